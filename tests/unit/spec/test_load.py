"""The specs people write: what is read, and every mistake at its place, in words."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.document import FileError, parse_document
from provisioner.errors import InvalidDocumentError
from provisioner.outputs import OUTPUTS
from provisioner.spec.check import component_mistakes
from provisioner.spec.gather import Gathered
from provisioner.spec.load import host_paths, load_spec, parse_spec
from provisioner.spec.model import ImageSpec

if TYPE_CHECKING:
    from provisioner.spec.model import Spec

DESIGNED = """\
name: trainer
target:
  platform: linux/amd64
  host: hosts/a100.yaml
accelerator: cuda
requires:
  python: ">=3.11,<3.13"
  pytorch: ">=2.6"
  cuda: "12.*"
  driver: ">=550"
  driver_module: open
packages:
  - transformers>=4.50
  - numpy
indexes:
  - name: pytorch
    url: "https://download.example.org/whl/{variant}"
policy:
  strategy: newest
  allow: [minor-version]
  exclude-newer: 2026-09-01
build:
  kind: extension
  arch_list: ["8.0", "9.0a", "9.0+PTX", "10.0f"]
image:
  base: nvidia/cuda:12.6.3-base-ubuntu24.04
  cuda: "12.6.3"
  require: "cuda>=12.6 brand=tesla,driver>=535,driver<536"
runs: container
outputs: [dockerfile, requirements]
"""


def read(text: str) -> Spec:
    return parse_spec(Gathered(parse_document(text, file="provision.yaml", kind="spec")))


def mistakes(text: str) -> list[str]:
    with pytest.raises(InvalidDocumentError) as caught:
        read(text)
    assert caught.value.exit_code == 2
    return [str(mistake) for mistake in caught.value.mistakes]


def test_every_key_is_read(tmp_path: Path) -> None:
    path = tmp_path / "provision.yaml"
    path.write_text(DESIGNED)
    loaded = load_spec(path)
    spec, document = loaded.spec, loaded.document
    assert spec.name == "trainer"
    assert spec.policy.exclude_newer == "2026-09-01"
    assert spec.requires["driver_module"] == "open"
    assert document.where(("requires", "cuda")) == f"{path}:9"


def test_a_spec_may_say_almost_nothing() -> None:
    spec = read("packages: [numpy]\n")
    assert (spec.name, spec.target.platform, spec.outputs) == ("environment", "linux/amd64", ("dockerfile",))


def test_a_key_at_the_wrong_place_is_told_its_place() -> None:
    assert mistakes(
        "hosts: [h100]\nplatform: linux/amd64\nexclude-newer: 2026-01-01\nspeed: 1\ntarget:\n  allow: [sdist]\n  runs: host\n"
    ) == [
        "provision.yaml:1:1: hosts: unknown key `hosts`; did you mean `target.host`?",
        "provision.yaml:2:1: platform: unknown key `platform`; did you mean `target.platform`?",
        "provision.yaml:3:1: exclude-newer: unknown key `exclude-newer`; did you mean `policy.exclude-newer`?",
        (
            "provision.yaml:4:1: speed: unknown key `speed`; known keys: accelerator, build, constraints, image, indexes, "
            "name, outputs, overrides, packages, packages-from, policy, requires, runs, target, targets"
        ),
        "provision.yaml:6:3: target.allow: unknown key `allow`; did you mean `policy.allow`?",
        "provision.yaml:7:3: target.runs: unknown key `runs`; it belongs at the top level, not indented",
    ]


def test_a_fact_of_a_host_at_the_wrong_place_is_told_its_place() -> None:
    text = 'packages: [torch]\ndriver: "550.120"\ntarget:\n  gpus: [{name: NVIDIA GeForce RTX 4090}]\n  os: {id: ubuntu}\n'
    assert mistakes(text) == [
        "provision.yaml:2:1: driver: unknown key `driver`; did you mean `target.host.driver`?",
        "provision.yaml:4:3: target.gpus: unknown key `gpus`; did you mean `target.host.gpus`?",
        "provision.yaml:5:3: target.os: unknown key `os`; did you mean `target.host.os`?",
    ]


def test_versions_that_were_mistyped_are_mistakes_where_they_stand() -> None:
    text = (
        "name: trainer\n"
        "requires:\n"
        '  cuda: "12.x."\n'
        '  driver: ">=58O.95"\n'
        '  python: "3.l1"\n'
        "policy:\n"
        '  prefer: {pytorch: "==2.6.O"}\n'
        '  avoid: {cuda: "12.9.x"}\n'
    )
    assert mistakes(text) == [
        "provision.yaml:3:3: requires.cuda: `12.x.` is not a range: after 12 comes `.x`; did you mean `12`?",
        "provision.yaml:4:3: requires.driver: `>=58O.95` is not a range: after 58 comes `O`; did you mean `580.95`?",
        "provision.yaml:5:3: requires.python: `3.l1` is not a range: after 3 comes `.l`; did you mean `3.11`?",
        "provision.yaml:7:12: policy.prefer.pytorch: `==2.6.O` is not a range: after 2.6 comes `.O`; did you mean `2.6.0`?",
        "provision.yaml:8:11: policy.avoid.cuda: `12.9.x` is not a range: after 12.9 comes `.x`; did you mean `12.9`?",
    ]


def test_mistakes_of_every_kind_are_reported_together() -> None:
    text = (
        "naem: trainer\n"
        "accelerator: gpu\n"
        "requires:\n"
        "  python: 3.10\n"
        "  cuda: newest\n"
        '  driver: ">=550,<"\n'
        "packages:\n"
        "  - numpy=>2\n"
        "policy:\n"
        "  exclude-newer: yesterday\n"
        "build:\n"
        "  kind: extension\n"
        "  arch_list: [sm_90]\n"
    )
    assert mistakes(text) == [
        "provision.yaml:1:1: naem: unknown key `naem`; did you mean `name`?",
        "provision.yaml:2:1: accelerator: `gpu` must be cuda, rocm, mps or cpu",
        'provision.yaml:4:3: requires.python: 3.10 is not quoted; write "3.10" (12.10 is not 12.1)',
        "provision.yaml:5:3: requires.cuda: `newest` is not a version: it must start with a number such as 12.6",
        "provision.yaml:6:3: requires.driver: `<` is not a range: write for example >=2.6, ==12.* or >=550,<580",
        "provision.yaml:8:5: packages[0]: `numpy=>2` is not a requirement; did you mean `numpy>=2`?",
        (
            "provision.yaml:10:3: policy.exclude-newer: `yesterday` is not a date such as 2026-09-01 "
            "or a timestamp such as 2026-09-01T12:00:00Z"
        ),
        "provision.yaml:13:15: build.arch_list[0]: `sm_90` is not a GPU architecture; write 9.0, 9.0a, 9.0+PTX or gfx942",
    ]


@pytest.mark.parametrize(
    ("requires", "package"),
    [("==2.6", "torch==2.6.0"), (">=2.6", "torch<3"), ("2.6", "torch"), ("*", "torch"), ("==2.6", "torch==2.7")],
)
def test_torch_and_pytorch_may_both_be_asked_for_and_whether_they_agree_is_solved(requires: str, package: str) -> None:
    assert read(f'requires: {{pytorch: "{requires}"}}\npackages: [{package}]\n').packages == (package,)


def test_whether_two_lines_about_one_package_agree_is_solved() -> None:
    assert read("packages: [numpy==1.26.4, NumPy>=2]\n").packages == ("numpy==1.26.4", "NumPy>=2")


def test_a_package_given_twice_for_different_machines_is_no_contradiction() -> None:
    lines = ("numpy==1.26.4; python_version < '3.12'", "numpy==2.2.6; python_version >= '3.12'")
    text = "packages:\n" + "".join(f'  - "{line}"\n' for line in lines)
    assert read(text).packages == lines


def test_what_a_marker_may_switch_off_is_no_contradiction() -> None:
    lines = ("torch==2.7; sys_platform == 'win32'", "numpy<2; python_version < '3.9'", "numpy>=2")
    text = 'requires: {pytorch: "==2.6"}\npackages:\n' + "".join(f'  - "{line}"\n' for line in lines)
    assert read(text).packages == lines


def test_a_package_may_be_narrowed_twice() -> None:
    assert read("packages: [numpy>=1.26, numpy<3]\n").packages == ("numpy>=1.26", "numpy<3")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ('requires: {cuda: ">=13,<12"}', "provision.yaml:1:12: requires.cuda: `>=13,<12` allows no version at all"),
        ('packages: ["numpy>2,<1"]', "provision.yaml:1:12: packages[0]: `numpy>2,<1` allows no version at all"),
        ("packages: [.]", "`.`"),
        ('packages: [""]', "``"),
    ],
)
def test_what_allows_nothing_is_a_mistake(text: str, mistake: str) -> None:
    (found,) = mistakes(text + "\n")
    assert mistake in found


@pytest.mark.parametrize(
    ("url", "mistake"),
    [
        (
            "ftp://example.org/simple",
            "`ftp://example.org/simple` is not an index URL; it starts with https://, http:// or file://",
        ),
        ("example.org/simple", "`example.org/simple` is not an index URL; it starts with https://, http:// or file://"),
        ("https:///simple", "`https:///simple` is not an index URL; it starts with https://, http:// or file://"),
        ("https://[::1/simple", "`https://[::1/simple` is not a URL: invalid IPv6 URL"),
        ("https://example.org/{cuda}", "`{cuda}` is not a placeholder; only {variant} is filled in"),
        (
            "https://me:secret@example.org/simple",
            (
                "a URL must not carry a password, since this file is shared; put it into .netrc or the installer's keyring "
                "(an `@` in a path is written %40)"
            ),
        ),
    ],
)
def test_an_index_that_cannot_be_one_is_a_mistake(url: str, mistake: str) -> None:
    (found,) = mistakes(f'indexes:\n  - name: mine\n    url: "{url}"\n')
    assert found == f"provision.yaml:3:5: indexes[0].url: {mistake}"
    assert "secret" not in found


@pytest.mark.parametrize("url", ["https://example.org/whl/{variant}", "http://127.0.0.1:8080/simple/", "file:///srv/wheels"])
def test_an_index_may_be_remote_local_or_a_folder(url: str) -> None:
    assert read(f'indexes: [{{name: mine, url: "{url}"}}]\n').indexes[0].url == url


def test_an_index_is_named_once() -> None:
    text = "indexes:\n  - {name: a, url: 'https://example.org/1'}\n  - {name: a, url: 'https://example.org/2'}\n"
    assert mistakes(text) == ["provision.yaml:3:6: indexes[1].name: index `a` is given twice; the first is on line 2"]


@pytest.mark.parametrize("text", ["2026-09-01", "2026-09-01T12:00:00Z", "2026-09-01T12:00:00+02:00"])
def test_a_day_or_an_instant_may_bound_uploads(text: str) -> None:
    assert read(f"policy:\n  exclude-newer: {text}\n").policy.exclude_newer == text


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("target: {platform: []}", "provision.yaml:1:10: target.platform: the list is empty; name at least one platform"),
        (
            'target: {host: ""}',
            "provision.yaml:1:10: target.host: no host is named; give a path, or `auto` for this machine",
        ),
        ("target: {host: []}", "provision.yaml:1:10: target.host: no host is named; give a path, or `auto` for this machine"),
        ("target: {host: [{kernel: '6.8'}]}", "provision.yaml:1:17: target.host[0]: must be text"),
        (
            "target: {host: [auto, a.yaml]}",
            (
                "provision.yaml:1:17: target.host[0]: `auto` stands alone; "
                "save this machine with `provision inspect` to list it with others"
            ),
        ),
        (
            "runs: host\noutputs: [requirements, compose]",
            (
                "provision.yaml:2:25: outputs[1]: `compose` is for containers, and `runs` has the host alone; "
                "write `runs: [host, container]` for both"
            ),
        ),
        (
            "outputs: [dockerfile, dockerfile]",
            "provision.yaml:1:23: outputs[1]: `dockerfile` is given twice; the first is on line 1",
        ),
        (
            "outputs: [requirement]",
            (
                "provision.yaml:1:11: outputs[0]: `requirement` is not an output format; "
                f"did you mean `requirements`? there are {', '.join(OUTPUTS)}"
            ),
        ),
        (
            "image: {cuda: latest}",
            "provision.yaml:1:9: image.cuda: `latest` is not a version: it must start with a number such as 12.6",
        ),
        (
            "image: {base: a/b, glibc: new}",
            "provision.yaml:1:20: image.glibc: `new` is not a version: it must start with a number such as 12.6",
        ),
        (
            "image: {python: '3.11'}",
            "provision.yaml:1:9: image.python: is about a base image that `base` names; this one is chosen",
        ),
        (
            "image: {apt: [git, git=1.0]}",
            "provision.yaml:1:20: image.apt[1]: package `git` is listed twice",
        ),
        (
            "image: {apt: ['curl-']}\n",
            "provision.yaml:1:15: image.apt[0]: `curl-` is not spelled right; write it as libgl1 or libgl1=1.6.0-1",
        ),
        (
            "image: {distribution: debian 12}\n",
            "provision.yaml:1:9: image.distribution: `debian 12` is not spelled right; write it as debian:12 or ubuntu:24.04",
        ),
        (
            "{runs: host, image: {apt: [git]}}",
            "provision.yaml:1:22: image.apt: are packages of an image, and this environment runs on the host",
        ),
        (
            "{runs: host, image: {snapshot: 2026-09-01}}",
            "provision.yaml:1:22: image.snapshot: dates packages of an image, and this environment runs on the host",
        ),
        (
            "image: {snapshot: 2026-02-30}",
            (
                "provision.yaml:1:9: image.snapshot: `2026-02-30` is not a date such as 2026-09-01 "
                "or a timestamp such as 2026-09-01T12:00:00Z"
            ),
        ),
    ],
)
def test_values_that_mean_nothing_are_mistakes(text: str, mistake: str) -> None:
    assert mistakes(text + "\n") == [mistake]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("- numpy\n", "provision.yaml:1:1: the file must hold a mapping of keys to values"),
        (
            "requires:\n\tcuda: '12.*'\n",
            "provision.yaml:2:1: a tab cannot indent YAML; write spaces",
        ),
        ("name: a\nname: b\n", "provision.yaml:2:1: name: `name` is given twice; the first is on line 1"),
        ("packages: numpy\n", 'provision.yaml:1:1: packages: `numpy` must be a list; write ["numpy"]'),
        ("requires: [cuda]\n", "provision.yaml:1:1: requires: must be a mapping of keys to values"),
        ("name: a b\n", "provision.yaml:1:1: name: `a b` is not spelled right; it must match ^[A-Za-z0-9][A-Za-z0-9_-]*$"),
    ],
)
def test_a_file_of_another_shape_is_refused_at_its_place(text: str, mistake: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        read(text)
    assert [str(found) for found in caught.value.mistakes] == [mistake]


@pytest.mark.parametrize("text", ["", "# only a comment\n"])
def test_an_empty_file_is_answered_with_the_command_that_fills_it(text: str) -> None:
    with pytest.raises(InvalidDocumentError) as caught:
        read(text)
    assert caught.value.causes == ("provision.yaml:1:1: the file is empty",)
    assert caught.value.hints == ("`provision init` writes a commented one",)


def test_of_the_files_beside_a_missing_spec_those_that_were_rendered_are_not_meant(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("# Generated by provision render from pylock.a.toml.\nnumpy==2.2.6\n")
    (tmp_path / "requirements-dev.txt").write_text("numpy\n")
    with pytest.raises(FileError) as caught:
        load_spec(tmp_path / "provision.yaml")
    assert caught.value.hints[0] == f"name the one that is meant: `{tmp_path / 'requirements-dev.txt'}`"


def test_a_file_that_is_not_there_is_answered_with_the_command_that_writes_it(tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught:
        load_spec(tmp_path / "provision.yaml")
    assert caught.value.message == f"spec `{tmp_path / 'provision.yaml'}` does not exist"
    assert caught.value.hints == ("`provision init` writes a commented one",)


KNOWN = ("cuda", "cudnn", "driver", "kernel", "python", "pytorch")


def unknown(name: str, known: tuple[str, ...] = KNOWN) -> str:
    document = parse_document(f'requires:\n  {name}: "1"\n', file="provision.yaml", kind="spec")
    with pytest.raises(InvalidDocumentError) as caught:
        parse_spec(Gathered(document), besides=component_mistakes(document, known))
    return str(caught.value.mistakes[0])


def test_a_component_is_answered_with_the_nearest_known_one() -> None:
    start = "provision.yaml:2:3: requires"
    assert unknown("torch") == f"{start}.torch: `torch` is not a component of the matrix; did you mean `pytorch`?"
    assert unknown("Python") == f"{start}.Python: `Python` is not a component of the matrix; did you mean `python`?"
    assert unknown("numpy") == (
        f"{start}.numpy: `numpy` is not a component of the matrix (cuda, cudnn, driver, kernel, python, pytorch, "
        "pytorch_build); an ordinary Python package belongs under `packages`"
    )


def test_known_components_pass() -> None:
    document = parse_document("requires: {cuda: '12.*', pytorch_build: cu126}\n", file="provision.yaml", kind="spec")
    assert not list(component_mistakes(document, KNOWN))


@pytest.mark.parametrize(
    ("host", "paths"),
    [
        ("hosts/a.yaml", (Path("environments/hosts/a.yaml"),)),
        ("[../a.yaml, /srv/b.yaml]", (Path("environments/../a.yaml"), Path("/srv/b.yaml"))),
        ("auto", ()),
        ("{platform: linux/amd64}", ()),
    ],
)
def test_host_paths_are_relative_to_the_spec(host: str, paths: tuple[Path, ...]) -> None:
    assert host_paths(read(f"target: {{host: {host}}}\n"), Path("environments/provision.yaml")) == paths


def test_a_spec_without_a_host_names_no_paths() -> None:
    assert host_paths(read("name: a\n"), Path("provision.yaml")) == ()


@pytest.mark.parametrize("text", ["numpy; os_name ~= 'posix'", "numpy; extra === 'fast'"])
def test_a_marker_that_compares_text_as_versions_is_a_mistake(text: str) -> None:
    told = f"provision.yaml:1:12: packages[0]: `{text}`: `~=` and `===` compare versions, not other text; write `==`"
    assert told in mistakes(f'packages: ["{text}"]\n')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("numpy=1.26", "; did you mean `numpy==1.26`?"),
        ("torch = 2.6.*", "; did you mean `torch==2.6.*`?"),
        ("numpy =>2,=<3", "; did you mean `numpy<=3,>=2`?"),
        ("numpy=<3", "; did you mean `numpy<=3`?"),
        ("numpy~1.26", "; did you mean `numpy~=1.26`?"),
        ("numpy^1.26", "; did you mean `numpy<2,>=1.26`?"),
        ("numpy==", ": a version is missing at its end"),
        ("numpy[", " such as numpy>=2: expected matching RIGHT_BRACKET for LEFT_BRACKET, after extras"),
    ],
)
def test_operators_of_other_tools_are_told_as_those_of_requirements(text: str, told: str) -> None:
    assert mistakes(f"packages: [{dumps(text)}]\n") == [
        f"provision.yaml:1:12: packages[0]: `{text}` is not a requirement{told}"
    ]


def test_a_caret_is_answered_with_a_range() -> None:
    assert mistakes("requires: {pytorch: ^2.6}\n") == [
        "provision.yaml:1:12: requires.pytorch: `^2.6` is not a range: write for example >=2.6, ==12.* or >=550,<580"
    ]


@pytest.mark.parametrize(
    ("word", "meant"), [("minor_version", "minor-version"), ("pre-release", "prerelease"), ("SDIST", "sdist")]
)
def test_a_word_that_is_nearly_one_of_those_allowed_is_corrected(word: str, meant: str) -> None:
    [mistake] = mistakes(f"policy: {{allow: [{word}]}}\n")
    assert mistake.endswith(f" or shared-files; did you mean `{meant}`?")


def test_no_other_accelerator_is_offered_for_a_gpu() -> None:
    assert mistakes("accelerator: gpu\n") == ["provision.yaml:1:1: accelerator: `gpu` must be cuda, rocm, mps or cpu"]


def test_a_marker_that_compares_nothing_of_the_target_is_a_mistake() -> None:
    told = "`numpy; 'a' == 'b'`: one side of each comparison names a variable, such as sys_platform"
    assert f"provision.yaml:1:12: packages[0]: {told}" in mistakes("packages: [\"numpy; 'a' == 'b'\"]\n")


@pytest.mark.parametrize(
    ("text", "time"),
    [
        (None, ""),
        ("2026-09-01", "20260901T000000Z"),
        ("2026-09-01T12:00:00Z", "20260901T120000Z"),
        ("2026-09-01T12:00:00+02:00", "20260901T100000Z"),
    ],
)
def test_a_snapshot_is_a_time_as_archives_write_it(text: str | None, time: str) -> None:
    assert ImageSpec(snapshot=text).snapshot_time == time
