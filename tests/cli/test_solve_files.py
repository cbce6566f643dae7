"""`provision solve` with files that requirements name by URL or path, indexes that claim names, and builds: whole screens."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
import venv
from typing import TYPE_CHECKING

import pytest

from tests.built_files import build_wheel
from tests.project import LOCK, UV_TAG
from tests.unit.index.test_build import add_sdist

if TYPE_CHECKING:
    from tests.project import Project

HIDDEN = "INDEX/files/hidden"
HOST = ("runs: host", "outputs: [requirements]")
NEXT = f"next: uv venv --python 3.12 && uv pip install -r {LOCK}\n"


def hide(project: Project, name: str, version: str, **fields: object) -> str:
    """A wheel that no page lists; returns its URL with the root of the index."""
    filename = project.index.add_wheel(name, version, index="hidden", **fields)  # type: ignore[arg-type]
    return f"{project.index.root}/files/hidden/{filename}"


def lay(project: Project, name: str, version: str, **fields: object) -> str:
    """A wheel in the project's folder; returns its name."""
    filename = hide(project, name, version, **fields).rpartition("/")[2]
    (project.folder / filename).write_bytes(project.index.files[f"/files/hidden/{filename}"].content)
    return filename


def test_a_wheel_by_url_is_solved_with_everything_else_and_locked_as_an_archive(project: Project) -> None:
    url = hide(project, "delta", "3.0", requires=["beta<2"], requires_python=">=3.9")
    project.index.add_wheel("delta", "9.0")
    project.spec(f"[delta @ {url}, beta]", *HOST)
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    assert outcome.err == f"wrote {LOCK}, requirements.txt\n{NEXT}"
    assert project.index.requests["/simple/delta/"] == 0, "a name that is given is asked of nobody"
    digest = hashlib.sha256(project.index.files["/files/hidden/delta-3.0-py3-none-any.whl"].content).hexdigest()
    size = len(project.index.files["/files/hidden/delta-3.0-py3-none-any.whl"].content)
    assert (
        '[[packages]]\nname = "delta"\nversion = "3.0"\nrequires-python = ">=3.9"\n'
        'dependencies = [\n    { name = "beta" },\n]\n\n'
        f'[packages.archive]\nurl = "{HIDDEN}/delta-3.0-py3-none-any.whl"\nsize = {size}\n\n'
        f'[packages.archive.hashes]\nsha256 = "{digest}"\n'
    ) in project.read(LOCK)
    assert f"delta @ {HIDDEN}/delta-3.0-py3-none-any.whl \\\n    --hash=sha256:{digest}\n" in project.read("requirements.txt")
    before = project.files()
    assert project.run("solve", "--offline").code == 0
    assert project.files() == before
    assert project.run("check").out.startswith(f"{LOCK}: yes\n")


def test_a_wheel_beside_the_spec_is_locked_by_path_and_copied(project: Project) -> None:
    filename = lay(project, "delta", "3.0", requires=["beta<2"])
    project.spec(f"['delta @ file:./{filename}', alpha==1.0]", *HOST)
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    assert outcome.err.endswith(f"wrote {LOCK}, requirements.txt, wheels/{filename}\n{NEXT}")
    assert f'[packages.archive]\npath = "wheels/{filename}"\n' in project.read(LOCK)
    assert str(project.folder) not in project.read(LOCK)
    assert (project.folder / "wheels" / filename).read_bytes() == (project.folder / filename).read_bytes()


def test_a_wheel_by_url_that_a_range_does_not_allow_is_a_conflict(project: Project) -> None:
    url = hide(project, "beta", "1.5")
    project.spec(f"[beta @ {url}, alpha==2.0]", *HOST)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert outcome.err == (
        "error: alpha==2.0 cannot be had  [no-stack]\n"
        "  you require alpha==2.0  (provision.yaml:8)\n"
        f"  alpha 2.0 needs beta>=2: the file that the spec names is 1.5 @ {HIDDEN}/beta-1.5-py3-none-any.whl "
        "(provision.yaml:8)  (metadata of alpha 2.0)\n"
        "  so no alpha==2.0 is left\n\n"
        "hint: alpha 1.0 instead of `alpha==2.0` would do: gives alpha 1.0, "
        f"beta 1.5 @ {HIDDEN}/beta-1.5-py3-none-any.whl, python 3.12\n"
    )


def test_a_wheel_by_url_that_does_not_fit_the_target_says_why(project: Project) -> None:
    url = hide(project, "delta", "3.0", tag="cp310-cp310-manylinux_2_17_x86_64")
    project.spec(f"[delta @ {url}]", *HOST)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert "delta 3.0 @ INDEX/files/hidden/delta-3.0-cp310-cp310-manylinux_2_17_x86_64.whl: " in outcome.err
    assert "no wheel for cp312 on linux/amd64 (has cp310)" in outcome.err


def test_a_file_that_only_metadata_names_is_for_who_names_it(project: Project) -> None:
    url = hide(project, "inner", "3.0")
    project.index.add_wheel("inner", "1.0")
    project.index.add_wheel("asker", "1.0", requires=[f"inner @ {url}"])
    project.spec("[asker, inner]", *HOST)
    outcome = project.run("solve", "--format", "json")
    assert outcome.code == 0, outcome.err
    assert (outcome.json["packages"], outcome.json["indexes"]) == (
        {"asker": "1.0", "inner": "3.0"},
        {"asker": "local", "inner": "url"},
    )
    talk = project.run("solve").err
    assert (
        f"relaxed: direct-url: inner comes from {HIDDEN}/inner-3.0-py3-none-any.whl, which the metadata of asker 1.0 names\n"
    ) in talk
    # Nobody who is chosen names the file: it is not there, however high its version.
    project.index.add_wheel("asker", "2.0", requires=["inner"])
    outcome = project.run("solve", "--upgrade", "--format", "json")
    assert outcome.json["packages"] == {"asker": "2.0", "inner": "1.0"}
    project.spec("[asker==1.0, inner>=3]", *HOST)
    outcome = project.run("solve", "--format", "json")
    assert outcome.code == 0, outcome
    assert outcome.json["packages"] == {"asker": "1.0", "inner": "3.0"}


def test_two_files_for_one_name_are_a_conflict(project: Project) -> None:
    one, two = hide(project, "inner", "1.0"), hide(project, "inner", "2.0")
    project.index.add_wheel("asker", "1.0", requires=[f"inner @ {one}"])
    project.spec(f"[asker, inner @ {two}]", *HOST)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert outcome.err == (
        "error: asker cannot be had  [no-stack]\n"
        "  you require asker  (provision.yaml:8)\n"
        f"  asker 1.0 needs inner @ {HIDDEN}/inner-1.0-py3-none-any.whl, where the spec names "
        f"{HIDDEN}/inner-2.0-py3-none-any.whl (provision.yaml:8)  (metadata of asker 1.0)\n"
        "  so no asker is left\n\n"
        "hint: leaving out `asker` would do: gives "
        f"inner 2.0 @ {HIDDEN}/inner-2.0-py3-none-any.whl, python 3.12\n"
    )


def test_metadata_cannot_name_a_file_of_this_machine_or_a_repository(project: Project) -> None:
    filename = lay(project, "inner", "1.0")
    project.index.add_wheel("asker", "1.0", requires=[f"inner @ {(project.folder / filename).as_uri()}"])
    project.index.add_wheel("asker", "2.0", requires=["inner @ git+https://host.example/inner.git"])
    project.spec("[asker]", *HOST)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert "metadata cannot name a file of this machine" in outcome.err
    assert "is a version control address, and a lock names files with their hashes" in outcome.err


def test_a_stated_hash_that_the_file_has_not_stops_the_run(project: Project) -> None:
    url = hide(project, "delta", "3.0")
    digest = hashlib.sha256(project.index.files["/files/hidden/delta-3.0-py3-none-any.whl"].content).hexdigest()
    project.spec(f"['delta @ {url}#sha256={'0' * 64}']", *HOST)
    before = project.files()
    outcome = project.run("solve")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        f"error: `{HIDDEN}/delta-3.0-py3-none-any.whl` is not the file that the requirement states  [hash-mismatch]\n"
        f"  wanted sha256 {'0' * 64}\n"
        f"  found sha256 {digest}\n\n"
        "hint: do not use it before you know why; then correct the `#sha256=` of the requirement\n"
    )
    assert project.files() == before
    project.spec(f"['delta @ {url}#sha256={digest}']", *HOST)
    assert project.run("solve").code == 0


def test_every_file_that_cannot_be_locked_is_told_at_once_with_its_line(project: Project) -> None:
    (project.folder / "sources").mkdir()
    packages = "\n".join(
        f"  - {text}"
        for text in (
            "'one @ git+https://host.example/one.git'",
            "'two @ https://ada:s3cret@host.example/two-1.0-py3-none-any.whl'",
            "'three @ file:./three-1.0-py3-none-any.whl'",
            "'four @ https://host.example/four-1.0.tar.gz#subdirectory=python'",
            "'five @ https://host.example/five-1.0.exe'",
        )
    )
    project.spec(f"\n{packages}", *HOST)
    outcome = project.run("solve")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error: spec has 5 mistakes  [invalid-document]\n"
        "  provision.yaml:9:5: packages[0]: `one @ git+https://host.example/one.git` is a version control address, "
        "and a lock names files with their hashes\n"
        "  provision.yaml:10:5: packages[1]: the URL of `two` carries a login, and this file is shared\n"
        "  provision.yaml:11:5: packages[2]: `three @ file:./three-1.0-py3-none-any.whl` does not exist\n"
        "  provision.yaml:12:5: packages[3]: `four @ https://host.example/four-1.0.tar.gz` asks for the subdirectory `python` "
        "of an archive, which is not locked\n"
        "  provision.yaml:13:5: packages[4]: `five @ https://host.example/five-1.0.exe` does not end in the name of a wheel "
        "(.whl) or of a source distribution (.tar.gz, .zip)\n\n"
        "hint: build a wheel of it (`pip wheel --no-deps URL`) and name the wheel, or serve it from an index\n"
        "hint: put the login of the host into ~/.netrc or the keyring\n"
        "hint: a relative path starts from the folder of the spec\n"
        "hint: build a wheel of it (`pip wheel --no-deps URL`) and name the wheel\n"
        "hint: build a wheel of it and name that\n"
    )


def test_an_index_that_claims_names_has_them_alone(project: Project) -> None:
    project.index.add_wheel("acme-tools", "1.0", index="own", requires=["beta"])
    project.index.add_wheel("acme-tools", "99.0")
    project.index.add_wheel("beta", "99.0", index="own")
    project.spec(
        "[acme-tools]",
        *HOST,
        'indexes: [{name: local, url: "INDEX/simple"}, {name: own, url: "INDEX/own", packages: ["Acme_*"]}]',
    )
    outcome = project.run("solve", "--format", "json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["packages"] == {"acme-tools": "1.0", "beta": "2.0"}
    assert outcome.json["indexes"] == {"acme-tools": "own", "beta": "local"}
    assert '"indexes.own.packages" = "Acme_*"' in project.read(LOCK)


def test_a_name_that_two_indexes_claim_is_a_mistake_with_both_lines(project: Project) -> None:
    project.spec(
        "[acme-tools]",
        *HOST,
        'indexes:\n  - {name: one, url: "INDEX/simple", packages: ["acme-*"]}\n'
        '  - {name: two, url: "INDEX/own", packages: [other, Acme_Tools]}',
    )
    outcome = project.run("solve")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error: spec has 1 mistake  [invalid-document]\n"
        "  provision.yaml:11:70: indexes[1].packages[1]: `Acme_Tools` belongs to an index already, "
        "at provision.yaml:10; keep one\n"
    )


def test_check_tells_a_lock_of_another_file(project: Project) -> None:
    url = hide(project, "delta", "3.0")
    filename = lay(project, "gamma", "4.0", requires=["beta"])
    project.spec(f"[delta @ {url}, 'gamma @ file:./{filename}']", *HOST)
    assert project.run("solve").code == 0
    assert "stale" not in project.run("check").out
    other = hide(project, "delta", "3.0", build="1")
    project.spec(f"[delta @ {other}, gamma]", *HOST)
    outcome = project.run("check")
    assert outcome.code == 1
    assert (
        "  no: delta 3.0 is locked from elsewhere, but you require "
        f"delta @ {HIDDEN}/delta-3.0-1-py3-none-any.whl  (provision.yaml:8)  [stale-package]\n"
    ) in outcome.out
    project.spec(f"['delta @ {url}#sha256={'0' * 64}', gamma]", *HOST)
    assert "delta 3.0 is locked from elsewhere" in project.run("check").out


def test_an_image_is_built_from_the_archives_of_the_lock(project: Project) -> None:
    filename = lay(project, "delta", "3.0")
    sources = project.index.add_sdist("omega", "1.0", index="hidden")
    project.spec(f"['delta @ file:./{filename}', 'omega @ {project.index.root}/files/hidden/{sources}']")
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    assert "relaxed: sdist: omega 1.0 @ INDEX/files/hidden/omega-1.0.tar.gz is built from a source distribution" in outcome.err
    dockerfile = project.read("Dockerfile")
    assert "--mount=type=bind,source=wheels,target=/tmp/wheels" in dockerfile
    assert "--no-build" not in dockerfile, "one of the packages is built in the image"


def test_what_was_found_by_building_is_said_and_stays_unverified(project: Project) -> None:
    pytest.importorskip("build", reason="PyPA build is not installed")
    add_sdist(project.index)
    project.index.add_wheel("found-by-building", "2.0")
    project.spec("[demo]", *HOST)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert "demo 1.0: only a source distribution; policy `allow: [sdist]` would take it" in outcome.err
    assert outcome.err.endswith(
        "\n\nhint: not tried: `allow: [sdist]` in policy would read the source distributions too\n"
        "hint: `demo @ https://…` in packages would name a wheel from elsewhere; without one, leave `demo` out\n"
    )
    project.spec("[demo]", *HOST, "policy: {allow: [sdist]}")
    outcome = project.run("solve")
    assert outcome.code == 1
    assert (
        "  demo 1.0: a source distribution whose dependencies are decided when it is built; "
        "policy `allow: [build]` would build it to find out  (the package index)\n"
    ) in outcome.err
    assert outcome.err.endswith(
        "\n\nhint: not tried: `allow: [build]` in policy would build the source distributions to find out what they require, "
        "which runs their code on this machine\n"
    )
    project.spec("[demo]", *HOST, "policy: {allow: [build]}")
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    assert outcome.err == (
        "relaxed: sdist: demo 1.0 is built from a source distribution, demo-1.0.tar.gz\n"
        "relaxed: build: what demo-1.0.tar.gz requires was found by building it on this machine, "
        "with the build requirements of today\n"
        f""
        "warning: unverified: demo: what demo-1.0.tar.gz requires was found by building it on one machine; "
        "another may find something else\n"
        f"wrote {LOCK}, requirements.txt\n{NEXT}"
    )
    before = project.files()
    assert project.run("solve", "--offline").code == 0
    assert project.files() == before


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the lock is for linux/amd64; installers refuse it here"
)
@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_two_installers_install_the_archives_of_a_lock(project: Project, installer: str) -> None:
    url = hide(project, "delta", "3.0", requires=["beta"])
    filename = lay(project, "omega", "1.0", requires=["beta"])
    python = f"=={sys.version_info[0]}.{sys.version_info[1]}"
    project.spec(f"[delta @ {url}, 'omega @ file:./{filename}']", *HOST, f"requires: {{python: '{python}'}}")
    assert project.run("solve").code == 0
    venv.create(project.folder / "venv")
    interpreter = str(project.folder / "venv" / "bin" / "python")
    if installer == "uv":
        command = ["uv", "pip", "install", "--preview", "--no-config", "--no-cache", "--python", interpreter, "-r", LOCK]
    else:
        command = ["pip", "--python", interpreter, "install", "--no-cache-dir", "-r", LOCK]
    subprocess.run([sys.executable, "-m", *command], cwd=project.folder, check=True, capture_output=True)
    code = "import importlib.metadata as m; print(sorted((d.name, d.version) for d in m.distributions()))"
    done = subprocess.run([interpreter, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[('beta', '2.0'), ('delta', '3.0'), ('omega', '1.0')]\n"


def test_find_links_in_the_place_of_an_index_out_of_reach_prove_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One build lies in a folder; that another is not there says nothing while its index does not answer."""
    filename, content = build_wheel("torch", "2.6.0+cpu")
    (project.folder / "links").mkdir()
    (project.folder / "links" / filename).write_bytes(content)
    monkeypatch.setenv("PIP_FIND_LINKS", str(project.folder / "links"))
    project.index.statuses["/whl/cpu/torch/"] = 503
    template = f"{project.index.root}/whl/{{variant}}"
    indexes = f'indexes: [{{name: local, url: "INDEX/simple"}}, {{name: pytorch, url: "{template}"}}]'
    project.spec("['torch==2.7.1']", "accelerator: cpu", indexes)
    outcome = project.run("solve")
    assert outcome.code == 3, outcome.err
    message = "index `pytorch-cpu` answers 503 (Service Unavailable)"
    assert outcome.err.startswith(
        f"warning: {message}; `torch` is taken from find-links alone\nerror: {message}  [unavailable]\n"
    )


def test_an_image_of_an_old_python_takes_the_installer_whose_module_needs_a_newer_one(project: Project) -> None:
    project.index.pages["simple"]["uv"].clear()
    project.index.add_wheel("uv", "0.9.5", tag=UV_TAG, requires_python=">=3.8")
    image = "python:3.7-slim-bookworm@sha256:" + "d" * 64
    project.spec("[alpha]", 'requires: {python: "==3.7"}', f'image: {{base: "{image}"}}')
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    assert "uv-0.9.5" in project.read("Dockerfile")


def test_an_image_whose_python_installs_no_lock_is_refused(project: Project) -> None:
    image = "nvidia/cuda:12.0.1-base-ubuntu18.04@sha256:" + "d" * 64
    project.spec("[alpha]", 'requires: {python: "==3.6"}', f'image: {{base: "{image}"}}')
    outcome = project.run("solve")
    assert (outcome.code, outcome.err.splitlines()[-3:]) == (
        3,
        [
            (
                "error: a lock is installed inside an image with Python 3.7 or newer, and python 3.6 was chosen for "
                "linux/amd64  [unavailable]"
            ),
            "",
            "hint: set `runs: host` and outputs without an image",
        ],
    )


def test_what_check_needs_to_ask_about_hosts_of_a_command_line_is_told(project: Project) -> None:
    project.spec("[alpha==1.0]", *HOST)
    host = project.folder / "box.yaml"
    host.write_text('platform: linux/amd64\ndriver: {version: "550.54.15"}\n', encoding="utf-8")
    outcome = project.run("solve", "--host", "box.yaml")
    assert outcome.code == 0, outcome.err
    assert outcome.err.endswith(
        f"{NEXT}`provision check --host box.yaml` asks about the same hosts; "
        "with them under `target.host` in provision.yaml plain `provision check` does\n"
    )
    assert "asks about" not in project.run("solve").err
