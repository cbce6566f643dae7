"""Specs nobody can solve, and specs that mean harm: each refused with exit code 2, every mistake at its line and column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.outputs import OUTPUTS
from tests.project import changed

if TYPE_CHECKING:
    from tests.project import Project

INIT = "\nhint: `provision init` writes a commented one\n"
KEYS = (
    "accelerator, build, constraints, image, indexes, name, outputs, overrides, packages, packages-from, policy, requires, "
    "runs, target, targets"
)
MAPPING = "must be a mapping of keys to values, such as"
POLICY = "strategy, allow, forbid, prefer, avoid, exclude-newer, strict, accept"
IMAGE = "base, distribution, glibc, python, apt, snapshot, compiler, cuda, cuda_compat, require"
NO_VALUE = "has no value; write one, or leave the key out"

REFUSED = {
    "empty": ("", ["1:1: the file is empty"], INIT),
    "only a comment": ("# later\n", ["1:1: the file is empty"], INIT),
    "a list": ("- a\n", ["1:1: the file must hold a mapping of keys to values"], ""),
    "text": ("hello\n", ["1:1: the file must hold a mapping of keys to values"], ""),
    "broken YAML": ("name: [a\n", ["2:1: while parsing a flow sequence expected ',' or ']', but got '<stream end>'"], ""),
    "a tab": (
        "target:\n\thost: x\n",
        ["2:1: a tab cannot indent YAML; write spaces"],
        "",
    ),
    "two documents": (
        "name: a\n---\nname: b\n",
        ["2:1: expected a single document in the stream but found another document"],
        "",
    ),
    "a key twice": ("name: a\nname: b\n", ["2:1: name: `name` is given twice; the first is on line 1"], ""),
    "a control character": (
        "name: a\x01\n",
        ["1:1: unacceptable character #x0001: special characters are not allowed"],
        "",
    ),
    "a tag that would run code": (
        "name: !!python/object/apply:os.system [id]\n",
        ["1:7: name: the tag `!!python/object/apply:os.system` is not read; write the value without it"],
        "",
    ),
    "a list inside itself": (
        "packages: &all [*all]\n",
        ["1:11: packages: `&all` holds itself, as `*all` at packages[0]; write it out"],
        "",
    ),
    "keys without values": (
        "name:\npackages:\nrequires: ~\npolicy: null\n",
        [f"1:1: name: {NO_VALUE}", f"2:1: packages: {NO_VALUE}", f"3:1: requires: {NO_VALUE}", f"4:1: policy: {NO_VALUE}"],
        "",
    ),
    "wrong types": (
        "name: [a]\ntarget: here\nrequires: [python]\npackages: numpy\npolicy: newest\nimage: slim\n",
        [
            "1:1: name: must be text",
            f"2:1: target: `here` {MAPPING} {{platform: linux/amd64}}; known keys: platform, host",
            "3:1: requires: must be a mapping of keys to values",
            '4:1: packages: `numpy` must be a list; write ["numpy"]',
            f"5:1: policy: `newest` {MAPPING} {{allow: [minor-version]}}; known keys: {POLICY}",
            f"6:1: image: `slim` {MAPPING} {{base: python:3.12-slim-bookworm}}; known keys: {IMAGE}",
        ],
        "",
    ),
    "unknown words": (
        "nam: x\naccelerator: gpu\ntarget: {platform: [linux/amd64, windows]}\noutputs: [docker]\n",
        [
            "1:1: nam: unknown key `nam`; did you mean `name`?",
            "2:1: accelerator: `gpu` must be cuda, rocm, mps or cpu",
            "3:34: target.platform[1]: `windows` must be linux/amd64, linux/arm64, macos/x86_64 or macos/arm64",
            f"4:11: outputs[0]: `docker` is not an output format; did you mean `dockerfile`? there are {', '.join(OUTPUTS)}",
        ],
        "",
    ),
    "a key like no other": ("zzz: 1\n", [f"1:1: zzz: unknown key `zzz`; known keys: {KEYS}"], ""),
    "a GPU by its name": (
        "requires: {gpu: A100}\n",
        [
            (
                "1:12: requires.gpu: `A100` is neither a compute capability, such as 9.0 or >=8.0, nor a gfx target, such as "
                "gfx942; a GPU by its name belongs to a host: `target: {host: {gpus: [{name: A100}]}}`"
            )
        ],
        "",
    ),
    "versions that are numbers": (
        "requires: {python: 3.10, cuda: 12}\n",
        [
            '1:12: requires.python: 3.10 is not quoted; write "3.10" (12.10 is not 12.1)',
            '1:26: requires.cuda: 12 is not quoted; write "12" (12.10 is not 12.1)',
        ],
        "",
    ),
    "a name in another script": (
        "name: トレーナー\n",
        ["1:1: name: `トレーナー` is not spelled right; it must match ^[A-Za-z0-9][A-Za-z0-9_-]*$"],
        "",
    ),
    "a name that climbs": (
        "name: ../../etc/cron.d/x\n",
        ["1:1: name: `../../etc/cron.d/x` is not spelled right; it must match ^[A-Za-z0-9][A-Za-z0-9_-]*$"],
        "",
    ),
    "requirements of another kind": (
        'packages: ["numpy >=> 2", "", ./local, "git+https://x/y"]\n',
        [
            (
                "1:12: packages[0]: `numpy >=> 2` is not a requirement such as numpy>=2: "
                "expected semicolon (after name with no version specifier) or end"
            ),
            (
                "1:27: packages[1]: `` is not a requirement such as numpy>=2: "
                "expected package name at the start of dependency specifier"
            ),
            (
                "1:31: packages[2]: `./local` is not a requirement such as numpy>=2: "
                "expected package name at the start of dependency specifier"
            ),
            (
                "1:40: packages[3]: `git+https://x/y` is not a requirement such as numpy>=2: "
                "expected semicolon (after name with no version specifier) or end"
            ),
        ],
        "",
    ),
    "components among the packages": (
        'packages: [pytorch, "python>=3.11"]\n',
        [
            "1:12: packages[0]: `pytorch` is not a Python distribution here; write `torch`, or put it under `requires`",
            "1:21: packages[1]: `python` is not a Python distribution here; put it under `requires`",
        ],
        "",
    ),
    "a contradiction within": (
        'requires: {pytorch: ">=2.6"}\npackages: ["torch<2", "numpy>=2", "numpy<1.5", "six>2,<1"]\n',
        ["2:48: packages[3]: `six>2,<1` allows no version at all"],
        "",
    ),
    "indexes that are none": (
        'indexes: [{name: a, url: nonsense}, {name: a, url: "https://me:secret@host/simple"}, {name: b}]\n',
        [
            "1:21: indexes[0].url: `nonsense` is not an index URL; it starts with https://, http:// or file://",
            "1:38: indexes[1].name: index `a` is given twice; the first is on line 1",
            (
                "1:47: indexes[1].url: a URL must not carry a password, since this file is shared; "
                "put it into .netrc or the installer's keyring (an `@` in a path is written %40)"
            ),
            "1:86: indexes[2]: `url` is missing",
        ],
        "",
    ),
    "a host in the spec, beside other mistakes": (
        (
            "name: a b\n"
            "target:\n"
            "  host:\n"
            "    kernel: 6\n"
            "    driver: {version: latest, module: open, kind: amdgpu}\n"
            "    gpus: [{compute_capability: '9.0', gfx: gfx942}]\n"
            "requires: {pyhton: '>=3.11', cuda: '>'}\n"
            "packages: numpy\n"
        ),
        [
            "1:1: name: `a b` is not spelled right; it must match ^[A-Za-z0-9][A-Za-z0-9_-]*$",
            '4:5: target.host.kernel: 6 is not quoted; write "6" (12.10 is not 12.1)',
            "5:14: target.host.driver.version: `latest` is not a version: it must start with a number such as 12.6",
            "5:31: target.host.driver.module: only NVIDIA's driver has flavours; this one is `amdgpu`",
            "6:40: target.host.gpus[0].gfx: `gfx` is AMD's and `compute_capability` NVIDIA's; a GPU has one of them",
            "7:12: requires.pyhton: `pyhton` is not a component of the matrix; did you mean `python`?",
            "7:30: requires.cuda: `>` is not a range: write for example >=2.6, ==12.* or >=550,<580",
            '8:1: packages: `numpy` must be a list; write ["numpy"]',
        ],
        "",
    ),
    "hosts of several targets": (
        "targets:\n  old: {host: {kernel: 6}}\n  new: {platform: linux, host: {gpu: H100}}\n",
        [
            '2:16: targets.old.host.kernel: 6 is not quoted; write "6" (12.10 is not 12.1)',
            "3:9: targets.new.platform: `linux` must be linux/amd64, linux/arm64, macos/x86_64 or macos/arm64",
            "3:33: targets.new.host.gpu: unknown key `gpu`; did you mean `gpus`?",
        ],
        "",
    ),
}


@pytest.mark.parametrize(("text", "mistakes", "end"), REFUSED.values(), ids=REFUSED.keys())
def test_a_spec_is_refused_with_every_mistake_in_its_place(project: Project, text: str, mistakes: list[str], end: str) -> None:
    path = project.folder / "provision.yaml"
    path.write_text(text, encoding="utf-8")
    before = project.files()
    outcome = project.run("solve")
    count = f"{len(mistakes)} mistake{'' if len(mistakes) == 1 else 's'}"
    lines = "".join(f"  provision.yaml:{mistake}\n" for mistake in mistakes)
    assert outcome.err == f"error: spec has {count}  [invalid-document]\n{lines}{end}"
    assert (outcome.code, outcome.out) == (2, "")
    assert project.files() == before


REFUSED_LATER = {
    "components that are none": (
        ('requires: {torch: "*", pyhton: "*"}',),
        (
            "error: spec has 2 mistakes  [invalid-document]\n"
            "  provision.yaml:8:12: requires.torch: `torch` is not a component of the matrix; did you mean `pytorch`?\n"
            "  provision.yaml:8:24: requires.pyhton: `pyhton` is not a component of the matrix; did you mean `python`?\n"
        ),
    ),
    "preferences of nothing": (
        ('policy: {prefer: {pyhton: "3.12"}, avoid: {"no such": "1", cupy: "13.*"}}',),
        (
            "error: spec has 2 mistakes  [invalid-document]\n"
            "  provision.yaml:10:19: policy.prefer.pyhton: `pyhton` is not a component of the matrix; did you mean `python`? "
            "name a Python package of this name under `packages`, too\n"
            "  provision.yaml:10:44: policy.avoid.no such: "
            "`no such` is neither a component of the matrix nor the name of a distribution\n"
        ),
    ),
    "an output format that does not exist": (
        ("outputs: [dockerfile, terraform]",),
        (
            "error: spec has 1 mistake  [invalid-document]\n"
            "  provision.yaml:10:23: outputs[1]: `terraform` is not an output format; "
            f"there are {', '.join(OUTPUTS)}\n"
        ),
    ),
    "a requirement of a repository": (
        ("packages: ['beta @ git+https://host.example/beta.git']",),
        (
            "error: spec has 1 mistake  [invalid-document]\n"
            "  provision.yaml:8:12: packages[0]: `beta @ git+https://host.example/beta.git` is a version control address, "
            "and a lock names files with their hashes\n"
            "\nhint: build a wheel of it (`pip wheel --no-deps URL`) and name the wheel, or serve it from an index\n"
        ),
    ),
    "an image that is none": (
        ("image: {base: 'Not An Image'}",),
        (
            "error: `Not An Image` is not an image reference: `library/Not An Image` cannot stand in one  [image-reference]\n"
            "\nhint: write it as name:tag\n"
        ),
    ),
    "half a digest": (
        ("image: {base: 'python:3.12-slim-bookworm@sha256:123'}",),
        (
            "error: `python:3.12-slim-bookworm@sha256:123` is not an image reference: "
            "`sha256:123` is not a sha256 digest  [image-reference]\n"
        ),
    ),
}


@pytest.mark.parametrize(("lines", "message"), REFUSED_LATER.values(), ids=REFUSED_LATER.keys())
def test_a_request_that_cannot_be_honoured_is_refused(project: Project, lines: tuple[str, ...], message: str) -> None:
    project.write(changed(*lines))
    before = project.files()
    outcome = project.run("solve")
    assert outcome.err == message
    assert (outcome.code, outcome.out) == (2, "")
    assert project.files() == before


def test_a_mistake_as_json_is_on_stdout_too(project: Project) -> None:
    project.write("name: a b\n")
    outcome = project.run("solve", "--format", "json")
    assert outcome.code == 2
    assert outcome.json == {
        "status": "error",
        "code": "invalid-document",
        "message": "spec has 1 mistake",
        "causes": [
            "provision.yaml:1:1: name: `a b` is not spelled right; it must match ^[A-Za-z0-9][A-Za-z0-9_-]*$",
        ],
        "hints": [],
    }


@pytest.mark.parametrize("line", ["--index-url {}", "-f {}", "-r {}", "-e ./{}", "./{}", "-c {}"])
def test_a_name_longer_than_any_file_can_have_is_no_file(project: Project, line: str) -> None:
    project.write(line.format("a" * 5_000) + "\n", name="requirements.txt")
    outcome = project.run("solve", "requirements.txt", "--dry-run", "--offline")
    assert outcome.code in {2, 3}, outcome
    for words in (("solve",), ("check",), ("init", "--out", "new.yaml", "--from"), ("fleet", "--hosts"), ("inspect", "--from")):
        outcome = project.run(*words, "a" * 5_000)
        assert outcome.code == 2, outcome


def test_windows_line_ends_and_a_byte_order_mark_are_read(project: Project) -> None:
    path = project.folder / "provision.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert project.run("solve", "--dry-run").code == 0


def test_bytes_that_are_not_text_are_refused(project: Project) -> None:
    (project.folder / "provision.yaml").write_bytes(b"name: caf\xe9\n")
    outcome = project.run("solve")
    assert (outcome.code, outcome.err) == (2, "error: spec `provision.yaml` is not UTF-8 text (byte 9)  [file]\n")


def test_a_folder_stands_for_the_one_spec_in_it(project: Project) -> None:
    assert project.run("explain", ".", "python") == project.run("explain", "provision.yaml", "python")
    assert project.run("explain", ".", "python").code == 0
    (project.folder / "other.yaml").write_text("name: other\npackages: [alpha]\n")
    outcome = project.run("explain", ".")
    hints = "hint: `other.yaml` is one\nhint: `provision.yaml` is one\n"
    assert (outcome.code, outcome.err) == (2, f"error: `.` has 2 specs, and one is asked about  [bad-usage]\n\n{hints}")
    (project.folder / "empty").mkdir()
    assert project.run("explain", "empty").err.startswith("error: no spec is in `empty`: ")


def test_a_spec_that_is_not_there_is_named(project: Project) -> None:
    outcome = project.run("solve", "provison.yaml")
    hints = f"\nhint: name the one that is meant: `provision.yaml`{INIT}"
    assert (outcome.code, outcome.err) == (2, f"error: spec `provison.yaml` does not exist  [file]\n{hints}")


def test_the_specs_beside_one_that_is_not_there_are_named(project: Project) -> None:
    (project.folder / "a.yaml").write_text("name: a\npackages: [six]\n")
    (project.folder / "requirements.txt").write_text("six\n")
    (project.folder / "provision.yaml").unlink(missing_ok=True)
    (project.folder / "compose.yaml").write_text("services: {}\n")
    outcome = project.run("solve")
    expected = (
        f"error: spec `provision.yaml` does not exist  [file]\n\n"
        f"hint: name the one that is meant: `a.yaml`, `requirements.txt`{INIT}"
    )
    assert (outcome.code, outcome.err) == (2, expected)


def test_the_key_of_an_item_of_another_list_is_not_offered(project: Project) -> None:
    project.spec("[alpha]", "outputs: [{format: dockerfile, file: Dockerfile}]")
    outcome = project.run("solve")
    assert outcome.code == 2
    assert outcome.err.splitlines()[1].endswith("outputs[0].file: unknown key `file`; known keys: format, path")


def test_a_very_large_number_is_a_version_nobody_published(project: Project) -> None:
    project.write(changed(f'requires: {{python: ">={"9" * 40}"}}'))
    outcome = project.run("solve", "--stack-only")
    assert outcome.code == 3
    assert f"  you require python >={'9' * 40}: the newest that the matrix knows is 3.15, of 2026-10-01" in outcome.err


def test_a_number_too_large_to_be_a_version_is_refused(project: Project) -> None:
    many = "9" * 5000
    project.write(changed(f'requires: {{python: ">={many}"}}', f"packages: ['numpy>={many}']"))
    outcome = project.run("solve")
    assert outcome.code == 2
    assert outcome.err == (
        "error: spec has 2 mistakes  [invalid-document]\n"
        f"  provision.yaml:6:12: requires.python: `{'9' * 20}…` is not a version: it is 5000 characters long\n"
        f"  provision.yaml:7:12: packages[0]: `numpy>={'9' * 20}…` is 5007 characters long; no requirement is\n"
    )


def test_a_date_that_is_none_is_refused(project: Project) -> None:
    outcome = project.run("solve", "--exclude-newer", "yesterday")
    assert outcome.code == 2
    assert outcome.err == "error: --exclude-newer `yesterday` is not a date  [bad-usage]\n\nhint: write it as 2026-09-01\n"
