"""A spec with the files it names: their lines join its own, wherever they stand, and all their mistakes are told at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.errors import InvalidDocumentError
from provisioner.spec.gather import is_path
from provisioner.spec.load import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.document import Document
    from provisioner.spec.load import LoadedSpec

ONE, TWO = "1" * 64, "2" * 64


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / next(iter(files))


def read(folder: Path, files: dict[str, str]) -> LoadedSpec:
    """The spec in the first of some files."""
    return load_spec(write(folder, files))


def mistakes(folder: Path, files: dict[str, str]) -> list[str]:
    with pytest.raises(InvalidDocumentError) as caught:
        read(folder, files)
    return [str(one).replace(f"{folder}/", "") for one in caught.value.mistakes]


def placed(document: Document, folder: Path, name: str, texts: tuple[str, ...]) -> list[str]:
    """The lines of a list, each with where it stands."""
    places = (document.where((name, index)).replace(f"{folder}/", "") for index in range(len(texts)))
    return [f"{place} {text}" for place, text in zip(places, texts, strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("numpy<2", False),
        ("numpy", False),
        ("constraints.txt", True),
        ("bounds.in", True),
        ("./numpy", True),
        ("../shared/bounds", True),
        ("numpy @ file:./numpy-1-py3-none-any.whl", False),
        ("numpy; python_version < '3' or os_name == 'a/b'", False),
    ],
)
def test_a_path_has_a_slash_or_ends_as_requirement_files_do(text: str, *, expected: bool) -> None:
    assert is_path(text) == expected


def test_lines_of_files_join_those_of_the_spec_and_keep_their_places(tmp_path: Path) -> None:
    files = {
        "provision.yaml": (
            "packages: [numpy]\n"
            "packages-from: [reqs/r.txt, pyproject.toml, {file: pyproject.toml, extras: [Gpu], groups: [Dev]}]\n"
            "constraints: ['six<2', c.txt]\n"
            "overrides: [o.txt, 'idna==3']\n"
        ),
        "reqs/r.txt": f"pandas>=2\nidna==3.7 --hash=sha256:{ONE} --hash=sha256:{TWO}\n-c d.txt\n./w-1-py3-none-any.whl\n",
        "reqs/d.txt": f"scipy<2\nidna --hash=sha256:{TWO} # as well\n".replace("idna ", "idna<4 "),
        "c.txt": "urllib3<3\n-r s.txt\n",
        "s.txt": "attrs\n",
        "o.txt": "h11>=0.16\n",
        "pyproject.toml": (
            '[project]\nname = "app"\nrequires-python = ">=3.11"\ndependencies = ["httpx"]\n'
            'optional-dependencies.gpu = ["cupy"]\n'
            '[dependency-groups]\ndev = ["pytest", "lib @ file:./lib-1-py3-none-any.whl"]\n'
        ),
    }
    loaded = read(tmp_path, files)
    spec, document = loaded.spec, loaded.document
    assert placed(document, tmp_path, "packages", spec.packages) == [
        "provision.yaml:1 numpy",
        "reqs/r.txt:1 pandas>=2",
        "reqs/r.txt:2 idna==3.7",
        "reqs/r.txt:4 w @ file:reqs/w-1-py3-none-any.whl",
        "pyproject.toml:4 httpx",
        "pyproject.toml:5 cupy",
        "pyproject.toml:7 pytest",
        "pyproject.toml:7 lib @ file:./lib-1-py3-none-any.whl",
        "s.txt:1 attrs",
    ]
    assert placed(document, tmp_path, "constraints", spec.constraints) == [
        "provision.yaml:3 six<2",
        "reqs/d.txt:1 scipy<2",
        "reqs/d.txt:2 idna<4",
        "c.txt:1 urllib3<3",
    ]
    assert placed(document, tmp_path, "overrides", spec.overrides) == ["provision.yaml:4 idna==3", "o.txt:1 h11>=0.16"]
    assert spec.hashes == {"idna": (TWO,)}
    assert placed(document, tmp_path, "requires-python", spec.requires_python) == ["pyproject.toml:3 >=3.11"]


KEYS = (
    "accelerator, build, constraints, image, indexes, name, outputs, overrides, packages, packages-from, policy, requires, "
    "runs, target, targets"
)

TOLD = """\
c.txt:1:1: `pandas<2,>2` allows no version at all
c.txt:3:3: `!!` {not_one}: expected package name at the start of dependency specifier
provision.yaml:1:24: packages[1]: `nump y` {not_one}: expected semicolon (after name with no version specifier) or end
provision.yaml:2:24: requirement file `gone.txt` does not exist
provision.yaml:2:48: packages-from[2].extras: `r.txt` is no pyproject.toml, so it has no extras
provision.yaml:2:62: `pyproject.toml` has no dependency group `dv`; did you mean `dev`?
provision.yaml:2:100: packages-from[4]: 3 is not quoted; write "3" (12.10 is not 12.1)
provision.yaml:3:22: constraints[1]: `urllib3` bounds nothing; write a range such as `urllib3<2`, or a path such as `./urllib3`
provision.yaml:3:31: constraints[2]: `torch[x]<3` names extras, which a constraint cannot bring in; leave out `[x]`
provision.yaml:3:45: constraints[3]: `numpy @ https://x.test/n-1-py3-none-any.whl` names a file; a constraint bounds versions
provision.yaml:3:92: constraints[4]: `python` is not a Python distribution here; put it under `requires`
provision.yaml:4:24: overrides[1]: `numpy>2` contradicts `numpy<1` on line 4
provision.yaml:4:35: overrides[2]: `scipy @ https://x.test/s-1-py3-none-any.whl` names a file; an override names versions
provision.yaml:5:1: hashes: unknown key `hashes`; known keys: {keys}
provision.yaml:8:54: indexes[1].packages[0]: `Torch` belongs to an index already, at provision.yaml:7; keep one
provision.yaml:8:61: indexes[1].packages[1]: `x y` is neither the name of a distribution nor a pattern such as nvidia-*
pyproject.toml:3:17: `x y` {not_one}: expected semicolon (after name with no version specifier) or end
r.txt:3:1: `--pre` is not read from requirement files: say so in the spec: `policy: {{allow: [prerelease]}}`
"""


def test_lines_for_different_environments_have_hashes_of_their_own(tmp_path: Path) -> None:
    files = {
        "provision.yaml": "packages-from: [r.txt]\n",
        "r.txt": (
            f"idna==3; python_version < '3.10' --hash=sha256:{ONE}\nidna==4; python_version >= '3.10' --hash=sha256:{TWO}\n"
        ),
    }
    assert read(tmp_path, files).spec.hashes == {"idna": (ONE, TWO)}


def test_every_mistake_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    files = {
        "provision.yaml": (
            "packages: ['numpy>=2', 'nump y']\n"
            "packages-from: [r.txt, gone.txt, {file: r.txt, extras: [a]}, {file: pyproject.toml, groups: [dv]}, 3]\n"
            "constraints: [c.txt, urllib3, 'torch[x]<3', 'numpy @ https://x.test/n-1-py3-none-any.whl', 'python<3.13']\n"
            "overrides: ['numpy<1', 'numpy>2', 'scipy @ https://x.test/s-1-py3-none-any.whl']\n"
            "hashes: {numpy: []}\n"
            "indexes:\n"
            "  - {name: a, url: https://a.test/simple, packages: [torch, 'nvidia-*']}\n"
            "  - {name: b, url: https://b.test/simple, packages: [Torch, 'x y']}\n"
        ),
        "r.txt": "attrs==1\nattrs==2\n--pre\n",
        "c.txt": "pandas<2,>2\n\n  !!\n",
        "pyproject.toml": '[project]\nname = "a"\ndependencies = ["x y"]\n[dependency-groups]\ndev = []\n',
    }
    assert mistakes(tmp_path, files) == TOLD.format(not_one="is not a requirement such as numpy>=2", keys=KEYS).splitlines()


def test_what_can_be_no_path_is_a_mistake(tmp_path: Path) -> None:
    files = {"provision.yaml": 'packages-from: ["", "a\\0b", {file: "\\0.toml"}]\nconstraints: ["a\\0/b"]\n'}
    assert mistakes(tmp_path, files) == [
        "provision.yaml:1:17: packages-from[0]: names no file",
        "provision.yaml:1:21: packages-from[1]: names no file",
        "provision.yaml:1:29: packages-from[2]: names no file",
        "provision.yaml:2:15: constraints[0]: names no file",
    ]


def test_an_address_is_no_path(tmp_path: Path) -> None:
    files = {
        "provision.yaml": (
            "packages-from: [https://x.test/r.txt, {file: https://x.test/pyproject.toml}]\n"
            "constraints: [git+https://x.test/y]\noverrides: [file:///c.txt]\n"
        )
    }
    told = "names an address; save what is there, and name the file"
    assert mistakes(tmp_path, files) == [
        f"provision.yaml:1:17: packages-from[0]: `https://x.test/r.txt` {told}",
        f"provision.yaml:1:39: packages-from[1]: `https://x.test/pyproject.toml` {told}",
        f"provision.yaml:2:15: constraints[0]: `git+https://x.test/y` {told}",
        f"provision.yaml:3:13: overrides[0]: `file:///c.txt` {told}",
    ]


def test_lines_that_contradict_each_other_from_file_to_file(tmp_path: Path) -> None:
    files = {
        "provision.yaml": "requires: {pytorch: '>=2.6'}\npackages: ['numpy<2', 'torch<3']\npackages-from: [r.txt]\n",
        "r.txt": "numpy>=2\ntorch<2\n",
    }
    assert set(read(tmp_path, files).spec.packages) == {"numpy<2", "torch<3", "numpy>=2", "torch<2"}, (
        "whether they agree is solved"
    )
    files["provision.yaml"] += "overrides: ['numpy==2.1', 'torch==2.7']\n"
    assert read(tmp_path, files).spec.overrides == ("numpy==2.1", "torch==2.7")
    files["provision.yaml"] = files["provision.yaml"].replace("'torch==2.7'", "'torch==2.1'")
    (mistake,) = mistakes(tmp_path, files)
    assert mistake == (
        "provision.yaml:4:27: overrides[1]: `torch==2.1` contradicts `pytorch: >=2.6` on line 1; they are the same component"
    )


PYPROJECT = """\
[project]
name = "My.App"
dependencies = ["httpx"]

[tool.provision]
packages = ["numpy"]
requires = {python = "3.12"}
policy.exclude-newer = 2026-09-01
"""


def test_a_project_file_holds_a_spec(tmp_path: Path) -> None:
    loaded = read(tmp_path, {"pyproject.toml": PYPROJECT})
    spec, document = loaded.spec, loaded.document
    assert (spec.name, spec.packages, spec.requires) == ("My-App", ("numpy", "httpx"), {"python": "3.12"})
    assert spec.policy.exclude_newer == "2026-09-01"
    assert placed(document, tmp_path, "packages", spec.packages) == ["pyproject.toml:6 numpy", "pyproject.toml:3 httpx"]
    assert document.where(("requires", "python")) == f"{tmp_path}/pyproject.toml:7"


def test_a_project_file_without_the_table_is_a_spec_of_defaults(tmp_path: Path) -> None:
    spec = read(tmp_path, {"pyproject.toml": PYPROJECT.partition("[tool")[0]}).spec
    assert (spec.name, spec.packages, spec.target.platform) == ("My-App", ("httpx",), "linux/amd64")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[build-system]\nrequires = []\n", ["pyproject.toml:1:1: has neither a [tool.provision] table nor a [project]"]),
        ("[tool]\nprovision = 3\n", ["pyproject.toml:1:1: the file must hold a mapping of keys to values"]),
        ("[tool.provision]\nrequirs = 1\n", ["pyproject.toml:2:1: requirs: unknown key `requirs`; did you mean `requires`?"]),
        ("[tool.provision]\nname = \n", ["pyproject.toml:2:8: invalid value"]),
        (
            '[project]\nname = "x"\ndependencies = ["a b"]\n[tool.provision]\noutputs = "x"\n',
            [
                (
                    "pyproject.toml:3:17: `a b` is not a requirement such as numpy>=2: "
                    "expected semicolon (after name with no version specifier) or end"
                ),
                'pyproject.toml:5:1: outputs: `x` must be a list; write ["x"]',
            ],
        ),
    ],
)
def test_mistakes_in_a_project_file(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert mistakes(tmp_path, {"pyproject.toml": text}) == expected


@pytest.mark.parametrize("name", ["loop.in", "loop.toml"])
def test_a_link_that_leads_to_itself_is_told_as_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(name)
    (told,) = mistakes(tmp_path, {"spec.yaml": f"packages-from: [{name}]\n"})
    assert told.startswith("spec.yaml:1:17: ")
    assert told.endswith("cannot be read: Too many levels of symbolic links")
