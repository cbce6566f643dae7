"""What independent readers find in an output, without the texts themselves: a hostile text must not change it.

Each function takes the text of one output and an empty folder, and returns its *shape*: the instructions, keys, elements or
commands in it. What runs as a program is run, with nothing on its PATH but programs that do nothing.
"""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Any

import dockerfile  # type: ignore[import-not-found, unused-ignore]
import yaml  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Shape = Callable[[str, Path], object]

IDLE = (
    *("apptainer", "apt-cache", "apt-get", "awk", "cat", "curl", "cut", "date"),
    *("dnf", "docker", "dpkg", "dpkg-query", "env", "find", "git", "grep"),
    *("head", "hostname", "id", "install", "mkdir", "mktemp", "mv", "nvidia-ctk"),
    *("patch", "python", "python3.12", "rm", "rpm", "sed", "sha256sum", "softwareupdate"),
    *("touch", "tr", "truncate", "xcode-select"),
)
"""Programs that scripts call; here they do nothing and succeed."""


def data(value: Any) -> object:  # noqa: ANN401 - JSON and YAML hold anything
    """The paths of keys in a document, without the numbers of entries, each with the kind of its value."""
    return frozenset(_paths(value, ""))


def _paths(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - as above
    if isinstance(value, (dict, list)):
        for key, below in value.items() if isinstance(value, dict) else (("", one) for one in value):
            yield from _paths(below, f"{path}.{key}")
    else:
        yield f"{path}: {type(value).__name__}"


def of_json(text: str, folder: Path) -> object:
    del folder
    return data(json.loads(text))


def of_devcontainer(text: str, folder: Path) -> object:
    content = text.partition("\n")[2]
    return of_json(content, folder), content.count("${")


def of_yaml(text: str, folder: Path) -> object:
    """The documents of a file that Compose or Kubernetes reads, and how many variables either would expand in it."""
    del folder
    plain = re.sub(r"^\s*#.*", "", text, flags=re.MULTILINE).replace("$$", "")
    return [data(one) for one in yaml.safe_load_all(text)], len(re.findall(r"\$[({]", plain))


def of_hcl(text: str, folder: Path) -> object:
    del folder
    plain = re.sub(r"^#.*", "", text, flags=re.MULTILINE).replace("$${", "").replace("%%{", "")
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|#.*', "_", text), plain.count("${"), plain.count("%{")


@cache
def of_shell(text: str, folder: Path) -> object:
    """Whether a script is one, and that running it makes no file."""
    programs = folder / "programs"
    if not programs.is_dir():
        programs.mkdir()
        for name in IDLE:
            (programs / name).write_text("#!/bin/sh\n", encoding="utf-8")
            (programs / name).chmod(0o755)
        (programs / "uname").write_text('#!/bin/sh\n[ "$1" = -m ] && echo x86_64 || echo Linux\n', encoding="utf-8")
        (programs / "uname").chmod(0o755)
    script = folder / "script"
    script.write_text(text, encoding="utf-8")
    checked = subprocess.run(["/bin/sh", "-n", "script"], cwd=folder, capture_output=True, text=True, check=False)
    subprocess.run(["/bin/sh", "script"], cwd=folder, env={"PATH": str(programs)}, capture_output=True, check=False, timeout=30)
    return checked.returncode, sorted(path.name for path in folder.iterdir())


def of_host_script(text: str, folder: Path) -> object:
    """The functions of the script, called for a dry run on every host that it is for."""
    functions, _, rest = text.rpartition("\nsystem=")
    called = "\n".join(f"({name})" for name in re.findall(r"\) (set_up_\d+) ;;", rest))
    lines = [line for line in rest.splitlines() if "set_up_" not in line]
    started = f"{functions}\ndry_run=yes kernel=6.8.0-1-generic release='' build=''\n{called}"
    return of_shell(started, folder), of_shell(text, folder), len(lines)


def of_slurm(text: str, folder: Path) -> object:
    return [line.split("=")[0] for line in text.splitlines() if line.lstrip().startswith("#SBATCH")], of_shell(text, folder)


def of_apptainer(text: str, folder: Path) -> object:
    """The sections and keywords of a definition file; the sections that are scripts are run."""
    head, *sections = re.split(r"^%", text, flags=re.MULTILINE)
    scripts = [body for name, _, body in (one.partition("\n") for one in sections) if name in {"post", "environment", "test"}]
    names = [one.split(None, 1)[0] for one in sections]
    keywords = [line.partition(":")[0] for line in head.splitlines() if line and not line.startswith("#")]
    labels = [line.split(None, 1)[0] for one in sections if one.startswith("labels") for line in one.splitlines()[1:] if line]
    return keywords, names, labels, [of_shell(one.replace("/opt/", f"{folder}/"), folder) for one in scripts], text.count("{{")


def of_dockerfile(text: str, folder: Path) -> object:
    """The instructions that BuildKit's own parser finds, with the names of variables and labels; commands are run."""
    found = []
    for one in dockerfile.parse_string(text):
        shape: object = len(one.value) if one.cmd.upper() != "RUN" else 1
        if one.cmd.upper() in {"ENV", "LABEL", "ARG"}:
            names = [text.partition("=")[0] for text in one.value[:: 1 if one.cmd.upper() == "ARG" else 2]]
            shape = [name for name in names if not re.fullmatch(r"[\w.-]+", name)]
        elif one.cmd.upper() == "RUN":
            shape = of_shell(one.value[0], folder)
        found.append((one.cmd.upper(), len(one.flags), shape))
    return found


TCL = """
foreach name {module-whatis setenv prepend-path} { proc $name args "lappend ::called $name; return" }
proc puts args {}
set called {}; set ModulesCurrentModulefile /x/modulefile
catch { source modulefile } problem
::tcl::mathfunc::int 0
set out [open answer w]; chan puts $out "$called $problem"; close $out
"""


def of_modulefile(text: str, folder: Path) -> object:
    """The commands that Tcl runs, and that running makes no file."""
    (folder / "modulefile").write_text(text, encoding="utf-8")
    ran = subprocess.run(["tclsh"], cwd=folder, input=TCL, capture_output=True, text=True, check=False, timeout=30)
    return ran.returncode, (folder / "answer").read_text(), sorted(path.name for path in folder.iterdir())


def of_requirements(text: str, folder: Path) -> object:
    """The logical lines of a file of requirements: the words that pip reads as options, and variables that it expands."""
    del folder
    lines = [line for line in re.sub(r"\\\n", " ", text).splitlines() if not line.startswith("#")]
    options = [[word.partition("=")[0] for word in line.split() if word.startswith("-")] for line in lines]
    return options, [len(re.split(r" [;#]", line)) for line in lines], re.findall(r"\$\{[A-Z0-9_]+\}", text)


OUTPUTS: dict[str, Shape] = {
    "dockerfile": of_dockerfile,
    "compose": of_yaml,
    "kubernetes": of_yaml,
    "kubernetes-deployment": of_yaml,
    "apptainer": of_apptainer,
    "devcontainer": of_devcontainer,
    "bake": of_hcl,
    "host-script": of_host_script,
    "slurm": of_slurm,
    "module": of_modulefile,
    "environment": of_shell,
    "requirements": of_requirements,
    "requirements-urls": of_requirements,
    "sbom": of_json,
    "sbom-spdx": of_json,
}
"""The reader of each output format, by its name in `provisioner.outputs`."""
