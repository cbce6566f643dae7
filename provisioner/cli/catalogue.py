"""The commands by name, with what `--help` says of each; plain data, so that `--help` imports no command."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """What the help, the reference and the manual pages say of a command, beside its options."""

    summary: str
    """What it does, in one line."""
    reads: str
    """What it takes its answer from."""
    writes: str
    """The files that it leaves; reports go to stdout."""
    exits: dict[int, str]
    """When it leaves with which exit code, but for 2, which means the same everywhere."""
    examples: tuple[str, ...]
    """Command lines, which a test runs."""


COMMANDS: dict[str, Entry] = {
    "init": Entry(
        summary="Write a commented provision.yaml for this machine",
        reads="nothing; with --from the files that are named",
        writes="provision.yaml (--out), and beside it its JSON Schema, provision.schema.json",
        exits={0: "written"},
        examples=(
            "provision init",
            "provision init --profile h100 --out trainer.yaml",
            "provision init --from environment.yml --from Dockerfile --profile a100",
        ),
    ),
    "solve": Entry(
        summary="Find a stack and its packages, lock them, write what is asked for",
        reads="SPEC (default: provision.yaml), its hosts, the lock that is there, and package indexes",
        writes="pylock.NAME.toml, and the outputs that the spec names, beside the spec or in --out",
        exits={
            0: "there is a stack; facts that nobody states are told",
            1: "nothing fits, and the conflict is told",
            3: "an index is out of reach, or has what the matrix does not know yet",
        },
        examples=(
            "provision solve",
            "provision solve trainer.yaml --host hosts/a100.yaml --host hosts/h100.yaml",
            "provision solve requirements.txt --host hosts/a100.yaml",
            "provision solve --with vllm --with transformers",
            "provision solve --stack-only --format json",
        ),
    ),
    "explain": Entry(
        summary="Say why this version and not a newer one, or why nothing fits",
        reads="SPEC (default: provision.yaml), its hosts and its lock; with --diff two locks",
        writes="nothing; with --html a page",
        exits={
            0: "there is a stack; with --diff always",
            1: "nothing fits, and the conflict is told; with --html: the lock no longer holds",
            3: "an index is out of reach, or has what the matrix does not know yet",
        },
        examples=(
            "provision explain",
            "provision explain provision.yaml pytorch",
            "provision explain --diff old.toml pylock.trainer.toml",
            "provision explain pylock.trainer.toml --html trainer.html",
        ),
    ),
    "check": Entry(
        summary="Say whether locks and rendered files still hold; works offline",
        reads="locks below PATH (default: this folder), their specs, hosts and rendered files; no index",
        writes="nothing; with --fix rendered files, with --report reports for tools of CI",
        exits={
            0: "every lock and file holds",
            1: "one does not, or will not run on a host",
            3: "a fact is unknown, or what --changes and --files ask is out of reach",
        },
        examples=(
            "provision check",
            "provision check --changes",
            "provision check environments/ --require-evidence 3",
        ),
    ),
    "render": Entry(
        summary="Write a Dockerfile, or another output, from a lock alone",
        reads="LOCK alone",
        writes="stdout; with --out a file, and helper files beside the lock",
        exits={0: "written"},
        examples=(
            "provision render pylock.trainer.toml --to dockerfile",
            "provision render pylock.trainer.toml --to requirements --out requirements.txt",
        ),
    ),
    "fetch": Entry(
        summary="Put every file of some locks into one folder, to install offline",
        reads="locks, or folders of them, and the indexes that they name",
        writes="the folder --to",
        exits={
            0: "every file is there",
            1: "a file has other content than is locked",
            3: "a file is out of reach; all others are there",
        },
        examples=(
            "provision fetch pylock.trainer.toml --to wheelhouse",
            "provision fetch environments/ --to wheelhouse --image",
        ),
    ),
    "validate": Entry(
        summary="Build and run an image, and compare what is in it with its lock",
        reads="LOCK, and the Dockerfile beside it or --image",
        writes="evidence beside the lock (--evidence); with --junit and --html reports; with --sbom what the image holds",
        exits={
            0: "everything that was asked for was measured and agrees",
            1: "something differs",
            3: "something could not be measured, such as a missing GPU, or the level has nothing to do for the lock",
        },
        examples=(
            "provision validate pylock.trainer.toml",
            "provision validate pylock.trainer.toml --junit junit.xml",
            "provision validate pylock.trainer.toml --image team/app:1.4 --level 2 --sbom image.cdx.json",
            'provision validate pylock.trainer.toml --engine slurm --node-class "h100: partition=gpu constraint=sm_90"',
        ),
    ),
    "inspect": Entry(
        summary="Describe this machine as a host profile",
        reads="this machine, a saved tree (--root), an inventory's nodes (--nodes), or a capture (--from)",
        writes="a host profile, on stdout",
        exits={0: "described"},
        examples=(
            "provision inspect > hosts/this.yaml",
            "provision inspect --nodes nodes.json --node gpu-7",
            "provision inspect --from nvidia-smi.xml > hosts/gpu-7.yaml",
        ),
    ),
    "doctor": Entry(
        summary="Say layer by layer what is found, what is wanted, and what to do",
        reads="this machine, or a profile (--host) or saved tree (--root); LOCK",
        writes="nothing",
        exits={0: "every layer is as wanted", 1: "a layer is not, and its remedy is told", 3: "a layer could not be seen"},
        examples=(
            "provision doctor",
            "provision doctor pylock.trainer.toml",
            "provision doctor --host hosts/a100.yaml --format json",
        ),
    ),
    "diagnose": Entry(
        summary="Say what an error log means: the cause, and what to do",
        reads="LOG (default: stdin), and what --host, --lock and --spec tell of its machine",
        writes="nothing",
        exits={
            0: "all that was recognised is harmless, and nothing else speaks of an error",
            1: "a cause was found",
            3: "nothing was recognised, or errors that are not known beside what is harmless",
        },
        examples=(
            "provision diagnose build.log",
            "provision diagnose dmesg.txt --host auto",
            "provision diagnose pod.log --host hosts/a100.yaml --lock pylock.trainer.toml --format json",
        ),
    ),
    "plan": Entry(
        summary="Say in which order hosts get from today's stack to the wanted one",
        reads="SPEC (default: provision.yaml), today's lock and hosts, and what --to names",
        writes="nothing; with --out the plan of each host",
        exits={
            0: "every host can follow",
            1: "some hosts cannot",
            3: "a fact is missing, or the stack at the end is unverified",
        },
        examples=(
            "provision plan --to 'pytorch>=2.9'",
            "provision plan trainer.yaml --to 'driver==580.*' --hosts hosts/",
            "provision plan --from pylock.trainer.toml --to next/pylock.trainer.toml --format json",
        ),
    ),
    "fleet": Entry(
        summary="Find the fewest stacks that serve many hosts",
        reads="SPEC (default: provision.yaml), and hosts: profiles, CSV, or what kubectl, Slurm or Ansible lists",
        writes="with --out where each stack may run, for the schedulers --to",
        exits={0: "every host is served", 1: "some hosts are not"},
        examples=(
            "provision fleet --hosts hosts/",
            "provision fleet trainer.yaml --hosts nodes.json --out affinity/",
            "provision fleet trainer.yaml --hosts nodes.txt --stacks 2 --out slurm/",
            "provision fleet --hosts machines.csv --format json",
        ),
    ),
    "schema": Entry(
        summary="Print the JSON Schema of a document, for editors and checks",
        reads="nothing",
        writes="a JSON Schema, on stdout",
        exits={0: "printed"},
        examples=(
            "provision schema",
            "provision schema spec > provision.schema.json",
        ),
    ),
    "matrix": Entry(
        summary="Browse, lint, measure and compare the compatibility matrix",
        reads="the matrix that is shipped, or --matrix DIR",
        writes="what its command says",
        exits={0: "done", 1: "the answer is no", 3: "an index or an artefact is out of reach"},
        examples=(
            "provision matrix show cuda==11.3",
            "provision matrix list pytorch",
            "provision matrix check",
        ),
    ),
    "cache": Entry(
        summary="Say what the cache holds, and take old things from it, or all",
        reads="the cache ($XDG_CACHE_HOME/provision, or --cache-dir)",
        writes="nothing; prune and clean remove",
        exits={0: "done", 3: "the tables are in use by another run"},
        examples=(
            "provision cache",
            "provision cache prune --days 30",
            "provision cache clean --format json",
        ),
    ),
}
"""The commands, in the order of `--help`."""

MATRIX_COMMANDS: dict[str, Entry] = {
    "list": Entry(
        summary="List the components, or the releases of one",
        reads="the matrix",
        writes="nothing",
        exits={0: "listed"},
        examples=(
            "provision matrix list",
            "provision matrix list cuda",
        ),
    ),
    "show": Entry(
        summary="Say what goes with a release, which stacks run on a host, or what one row says",
        reads="the matrix",
        writes="nothing",
        exits={0: "told", 1: "no stack runs on that host"},
        examples=(
            "provision matrix show cuda==11.3",
            "provision matrix show sm_61 driver=535",
            "provision matrix show gpu='NVIDIA A100' driver==535.104.05 --format json",
            "provision matrix show cuda-13-gpu-floor",
        ),
    ),
    "check": Entry(
        summary="Lint the matrix, and count its rows, measurements and disagreements",
        reads="the matrix, and the published tables beside it",
        writes="nothing",
        exits={0: "no findings", 1: "there are findings"},
        examples=(
            "provision matrix check",
            "provision matrix check --matrix my-matrices --format json",
        ),
    ),
    "refresh": Entry(
        summary="Derive the generated files again from the package index",
        reads="package indexes, registries and release pages",
        writes="the generated files of the matrix; with --dry-run nothing",
        exits={
            0: "as derived",
            1: "an index has less than the matrix; with --dry-run: there are changes",
            3: "something is out of reach",
        },
        examples=(
            "provision matrix refresh",
            "provision matrix refresh pytorch triton --dry-run",
            "provision matrix refresh wheels --measure",
        ),
    ),
    "audit": Entry(
        summary="Measure rows of the matrix again from the artefacts they name",
        reads="rows of the matrix, and the artefacts that they name",
        writes="nothing",
        exits={0: "nothing is refuted", 1: "a row is refuted", 3: "nothing could be measured"},
        examples=(
            "provision matrix audit pytorch==2.8.0",
            "provision matrix audit wheels==vllm",
            "provision matrix audit --part 3/52",
        ),
    ),
    "diff": Entry(
        summary="Compare the matrix with other published tables",
        reads="the matrix, and other published tables (--against)",
        writes="nothing",
        exits={0: "every difference has a written reason", 1: "one has none, or a reason explains no difference any more"},
        examples=(
            "provision matrix diff",
            "provision matrix diff --against backend.rs --against torch_compatibility.json",
        ),
    ),
    "site": Entry(
        summary="Write a static site to explore the matrix; it works offline",
        reads="the matrix",
        writes="the folder --out",
        exits={0: "written"},
        examples=("provision matrix site --out matrix-site",),
    ),
}
"""The commands of `provision matrix`. A command is the function `matrix_NAME` in `cli/matrix_NAME.py`."""
