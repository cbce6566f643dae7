"""The commands by name, with a summary and examples; plain data, so that `--help` imports no command."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "init": (
        "Write a commented provision.yaml for this machine",
        (
            "provision init",
            "provision init --profile h100 --out trainer.yaml",
            "provision init --from environment.yml --from Dockerfile --profile a100",
        ),
    ),
    "solve": (
        "Find a stack and its packages, lock them, write what is asked for",
        (
            "provision solve",
            "provision solve trainer.yaml --host hosts/a100.yaml --host hosts/h100.yaml",
            "provision solve requirements.txt --host hosts/a100.yaml",
            "provision solve --stack-only --format json",
        ),
    ),
    "explain": (
        "Say why this version and not a newer one, or why nothing fits",
        (
            "provision explain",
            "provision explain provision.yaml pytorch",
            "provision explain --diff old.toml pylock.trainer.toml",
        ),
    ),
    "check": (
        "Say whether locks and rendered files still hold; works offline",
        ("provision check", "provision check --changes", "provision check environments/ --require-evidence 3"),
    ),
    "render": (
        "Write a Dockerfile, or another output, from a lock alone",
        (
            "provision render pylock.trainer.toml --to dockerfile",
            "provision render pylock.trainer.toml --to requirements --out requirements.txt",
        ),
    ),
    "fetch": (
        "Put every file of some locks into one folder, to install offline",
        ("provision fetch pylock.trainer.toml --to wheelhouse", "provision fetch environments/ --to wheelhouse --image"),
    ),
    "validate": (
        "Build and run an image, and compare what is in it with its lock",
        (
            "provision validate pylock.trainer.toml",
            "provision validate pylock.trainer.toml --junit junit.xml",
            'provision validate pylock.trainer.toml --engine slurm --node-class "h100: partition=gpu constraint=sm_90"',
        ),
    ),
    "inspect": (
        "Describe this machine as a host profile",
        (
            "provision inspect > hosts/this.yaml",
            "provision inspect --nodes nodes.json --node gpu-7",
            "provision inspect --from nvidia-smi.xml > hosts/gpu-7.yaml",
        ),
    ),
    "doctor": (
        "Say layer by layer what is found, what is wanted, and what to do",
        ("provision doctor", "provision doctor pylock.trainer.toml", "provision doctor --host hosts/a100.yaml --format json"),
    ),
    "diagnose": (
        "Say what an error log means: the cause, and what to do",
        (
            "provision diagnose build.log",
            "provision diagnose dmesg.txt --host auto",
            "provision diagnose pod.log --host hosts/a100.yaml --lock pylock.trainer.toml --format json",
        ),
    ),
    "plan": (
        "Say in which order hosts get from today's stack to the wanted one",
        (
            "provision plan --to 'pytorch>=2.9'",
            "provision plan trainer.yaml --to 'driver==580.*' --hosts hosts/",
            "provision plan --from pylock.trainer.toml --to next/pylock.trainer.toml --format json",
        ),
    ),
    "fleet": (
        "Find the fewest stacks that serve many hosts",
        (
            "provision fleet --hosts hosts/",
            "provision fleet trainer.yaml --hosts nodes.json --out affinity/",
            "provision fleet --hosts machines.csv --format json",
        ),
    ),
    "schema": (
        "Print the JSON Schema of a document, for editors and checks",
        ("provision schema", "provision schema spec > provision.schema.json"),
    ),
    "matrix": (
        "Browse, lint, measure and compare the compatibility matrix",
        ("provision matrix show cuda==11.3", "provision matrix list pytorch", "provision matrix check"),
    ),
    "cache": (
        "Say what the cache holds, and take old things from it, or all",
        ("provision cache", "provision cache prune --days 30", "provision cache clean --format json"),
    ),
}
"""The summary and the examples of each command, in the order of `--help`."""

MATRIX_COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "list": (
        "List the components, or the releases of one",
        ("provision matrix list", "provision matrix list cuda"),
    ),
    "show": (
        "Say what goes with a release, which stacks run on a host, or what one row says",
        (
            "provision matrix show cuda==11.3",
            "provision matrix show sm_61 driver=535",
            "provision matrix show gpu='NVIDIA A100' driver==535.104.05 --format json",
            "provision matrix show cuda-13-gpu-floor",
        ),
    ),
    "check": (
        "Lint the matrix, and count its rows, measurements and disagreements",
        ("provision matrix check", "provision matrix check --matrix my-matrices --format json"),
    ),
    "refresh": (
        "Derive the generated files again from the package index",
        (
            "provision matrix refresh",
            "provision matrix refresh pytorch triton --dry-run",
            "provision matrix refresh wheels --measure",
        ),
    ),
    "audit": (
        "Measure rows of the matrix again from the artefacts they name",
        ("provision matrix audit pytorch==2.8.0", "provision matrix audit wheels==vllm", "provision matrix audit --part 3/52"),
    ),
    "diff": (
        "Compare the matrix with other published tables",
        ("provision matrix diff", "provision matrix diff --against backend.rs --against torch_compatibility.json"),
    ),
    "site": (
        "Write a static site to explore the matrix; it works offline",
        ("provision matrix site --out matrix-site",),
    ),
}
"""The summary and the examples of each command of `provision matrix`.

A command is the function `matrix_NAME` in `cli/matrix_NAME.py`.
"""
