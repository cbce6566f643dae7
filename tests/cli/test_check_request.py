"""`provision check` where the spec changed in what is no version: extras, indexes, where it runs, what nobody asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import tomli_w

from provisioner.lock.format.file import digest_of
from tests.project import LOCK, SPEC, changed

if TYPE_CHECKING:
    from typing import Any

    from tests.project import Project

NEXT = "  next: provision solve\n"
AGAIN = (
    "  solving the system half again would change nothing\n"
    "  `provision check --changes` asks the indexes which packages would move\n"
    f"{NEXT}"
)


def checked(project: Project) -> str:
    """What a check says that ends with no; no index is asked."""
    project.index.requests.clear()
    outcome = project.run("check")
    assert (outcome.code, sum(project.index.requests.values())) == (1, 0)
    return outcome.out


def no(*lines: str) -> str:
    return f"{LOCK}: no\n{''.join(f'  no: {line}' + chr(10) for line in lines)}{AGAIN}"


def rewritten(project: Project, change: Any) -> None:  # noqa: ANN401 - a function of the tables of a lock
    """The lock with a change, its digest made again, as by a program that knows how."""
    import tomllib

    path = project.folder / LOCK
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    change(table)
    table["tool"]["provision"]["digest"] = digest_of(table)
    path.write_text(tomli_w.dumps(table), encoding="utf-8")


def package(table: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in table["packages"] if one["name"] == name)


class TestUnasked:
    HINT = "    hint: `provision solve` locks without {}\n"

    def test_what_is_no_longer_asked_for_is_named_with_what_it_brought(self, project: Project) -> None:
        project.index.add_wheel("delta", "1.0", requires=["epsilon"])
        project.index.add_wheel("epsilon", "1.0", requires=["delta"])
        project.spec("[alpha, delta]")
        assert project.run("solve").code == 0
        project.write()
        text = "  no: delta 1.0 and epsilon 1.0 are locked, and nothing that the spec asks for needs them  [unasked-package]\n"
        assert checked(project) == f"{LOCK}: no\n{text}{self.HINT.format('them')}{AGAIN.removesuffix(NEXT)}"
        assert project.run("solve").code == 0
        assert project.run("check").code == 0

    def test_a_framework_that_is_asked_for_as_a_component_leads_to_what_it_requires(self, project: Project) -> None:
        project.index.add_wheel("torch", "2.7.1", tag="cp312-cp312-manylinux_2_28_x86_64", requires=["delta"])
        project.index.add_wheel("delta", "1.0")
        project.write(changed("accelerator: cuda", 'requires: {pytorch: "==2.7.1+cu126"}', "image: {base: slim}"))
        assert project.run("solve").code == 0
        assert 'name = "delta"' in project.read(LOCK)
        assert "unasked-package" not in project.run("check").out

    def test_what_the_matrix_says_a_package_needs_is_asked_for_by_it(self, project: Project) -> None:
        project.index.add_wheel("torch", "2.11.0", tag="cp312-cp312-manylinux_2_28_x86_64", requires=["delta"])
        project.index.add_wheel("torchaudio", "2.11.0", tag="cp312-cp312-manylinux_2_28_x86_64")
        project.index.add_wheel("delta", "1.0")
        project.write(changed("accelerator: cuda", "packages: [torchaudio]", "image: {base: slim}"))
        assert project.run("solve").code == 0
        assert 'name = "delta"' in project.read(LOCK)
        assert "unasked-package" not in project.run("check").out

    def test_what_somebody_else_needs_stays(self, project: Project) -> None:
        project.spec("[alpha, beta]")
        assert project.run("solve").code == 0
        project.write()
        assert project.run("check").code == 0

    def test_beside_a_package_that_is_missing_nobody_knows_who_needs_the_rest(self, project: Project) -> None:
        project.index.add_wheel("delta", "1.0", requires=["epsilon"])
        project.index.add_wheel("epsilon", "1.0")
        project.spec("[alpha, delta]")
        assert project.run("solve").code == 0
        project.spec("[alpha, gamma]")
        assert checked(project) == no("`gamma` is not locked: you require gamma  (provision.yaml:8)  [missing-package]")


class TestExtras:
    @pytest.fixture(autouse=True)
    def with_extras(self, project: Project) -> None:
        project.index.add_wheel("delta", "1.0", requires=['epsilon; extra == "more-of-it"'], extras=["more-of-it"])
        project.index.add_wheel("epsilon", "1.0")
        project.index.add_wheel("zeta", "1.0", requires=["delta[more_of_it]"])

    def test_one_that_is_asked_for_now_was_not_locked(self, project: Project) -> None:
        project.spec("[delta]")
        assert project.run("solve").code == 0
        project.spec("['delta[More.of_it]>=1']")
        where = "but you require delta[More.of_it]>=1  (provision.yaml:8)  [stale-package]"
        assert checked(project) == no(f"delta 1.0 is locked without its extra `more-of-it`, {where}")
        assert project.run("solve").code == 0
        assert project.run("check").code == 0

    def test_one_that_is_not_asked_for_any_more_was_locked(self, project: Project) -> None:
        project.spec("['delta[more_of_it]']")
        assert project.run("solve").code == 0
        project.spec("[delta]")
        text = "delta 1.0 is locked with its extra `more-of-it`, which nothing asks for any more  [stale-package]"
        assert checked(project) == no(text)

    def test_one_that_another_package_asks_for_is_there(self, project: Project) -> None:
        project.spec("[zeta, 'delta[more-of-it]']")
        assert project.run("solve").code == 0
        project.spec("[zeta, delta]")
        assert project.run("check").code == 0
        project.spec("[zeta]")
        assert project.run("solve").code == 0
        project.spec("[zeta, 'delta[more-of-it]']")
        assert project.run("check").code == 0

    @pytest.mark.parametrize("lists", [("[zeta]", "['delta[more-of-it]']"), ("['delta[more-of-it]']", "['delta>=1']")])
    def test_one_that_an_override_adds_or_drops_is_as_it_was(self, project: Project, lists: tuple[str, str]) -> None:
        project.spec(lists[0], f"overrides: {lists[1]}")
        assert project.run("solve").code == 0
        assert project.run("check").code == 0

    def test_one_of_another_environment_is_none(self, project: Project) -> None:
        project.spec("[delta]")
        assert project.run("solve").code == 0
        project.spec("[delta, 'delta[more-of-it]; sys_platform == \"win32\"']")
        assert project.run("check").code == 0

    def test_an_earlier_version_did_not_record_any(self, project: Project) -> None:
        project.spec("['delta[more_of_it]']", "outputs: []")
        assert project.run("solve").code == 0
        rewritten(project, lambda table: table["tool"]["provision"].pop("asked"))
        outcome = project.run("check")
        assert outcome.code == 3
        assert (
            "  unverified: an earlier version recorded no extras, so delta 1.0 may be locked without its extra "
            "`more-of-it`: you require delta[more_of_it]  (provision.yaml:8)  [unverified]\n"
        ) in outcome.out


class TestIndexes:
    @pytest.fixture(autouse=True)
    def solved(self, project: Project) -> None:
        assert project.run("solve").code == 0

    @pytest.mark.parametrize(
        ("indexes", "finding"),
        [
            (
                '{name: corp, url: "https://corp.example/simple", packages: [be*]}, {name: local, url: "INDEX/simple"}',
                "beta 2.0 comes from index local, and the spec has index corp alone for it",
            ),
            (
                '{name: local, url: "INDEX/simple", packages: [alpha]}',
                "beta 2.0 comes from index local, which the spec has for alpha alone",
            ),
            (
                '{name: local, url: "https://mirror.example/simple/"}',
                "alpha 2.0 and beta 2.0 come from index local at INDEX/simple, and the spec has it at https://mirror.example/simple",
            ),
            (
                '{name: corp, url: "INDEX/simple"}',
                "alpha 2.0 and beta 2.0 come from index local, which the spec does not have",
            ),
        ],
        ids=["claimed", "not offered", "moved", "gone"],
    )
    def test_a_package_from_elsewhere_than_the_spec_has_it_is_no(self, project: Project, indexes: str, finding: str) -> None:
        project.write(changed(f"indexes: [{indexes}]"))
        assert checked(project) == no(f"{finding}  (provision.yaml:8)  [stale-index]")

    @pytest.mark.parametrize(
        "indexes",
        [
            '{name: local, url: "INDEX/simple/"}',
            '{name: local, url: "INDEX/simple", packages: ["*"]}',
            '{name: corp, url: "https://corp.example/simple", packages: [gamma]}, {name: local, url: "INDEX/simple"}',
        ],
    )
    def test_what_comes_from_where_it_may_is_fine(self, project: Project, indexes: str) -> None:
        project.write(changed(f"indexes: [{indexes}]"))
        assert project.run("check").code == 0

    def test_without_indexes_every_machine_has_its_own(self, project: Project) -> None:
        project.write(SPEC.replace('indexes:\n  - {name: local, url: "INDEX/simple"}\n', ""))
        assert project.run("check").code == 0


def test_a_spec_that_no_longer_runs_in_a_container_makes_the_lock_stale(project: Project) -> None:
    assert project.run("solve").code == 0
    project.write(changed("runs: host", "image: {}", "outputs: []"))
    text = "  no: the spec wants to run on the host itself, the lock is for running in a container  [stale-runs]\n"
    out = checked(project)
    assert text in out
    assert "    it runs on the host itself now, without an image\n" in out


@pytest.mark.parametrize("word", ["sdist", "build"])
def test_a_source_distribution_that_the_spec_does_not_allow_any_more_is_no(project: Project, word: str) -> None:
    project.index.add_sdist("delta", "1.0")
    project.spec("[delta]", f"policy: {{allow: [{word}]}}", "outputs: []")
    assert project.run("solve").code == 0
    assert project.run("check").code in {0, 3}
    project.spec("[delta]", "outputs: []")
    text = "delta 1.0 is a source distribution, and no `allow: [sdist]` of the spec takes it"
    assert f"  no: {text}  [stale-package]\n" in checked(project)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            lambda table: table["tool"]["provision"]["platforms"][0].update({"environment": {"LD_PRELOAD": "/other.so"}}),
            "the lock sets LD_PRELOAD to `/other.so`, the stack needs it to be empty  [stale-environment]",
        ),
        (
            lambda table: table["tool"]["provision"]["platforms"][0].update({"host-requirements": {"glibc": ">=9"}}),
            "the lock asks hosts for glibc >=9, the stack needs none in particular  [stale-host-requirements]",
        ),
    ],
    ids=["variable", "host"],
)
def test_what_hosts_and_images_are_told_is_what_the_stack_calls_for(project: Project, change: Any, finding: str) -> None:  # noqa: ANN401
    project.write("glibc: '2.36'\n", name="host.yaml")
    project.spec("[alpha]", "target: {host: host.yaml}")
    assert project.run("solve", "--upgrade").code == 0
    rewritten(project, change)
    assert f"  no: {finding}\n" in checked(project)


class TestContradictions:
    """One field was exchanged, and the digest made again; `tests/property/test_lock_coherence.py` has many more."""

    @pytest.fixture(autouse=True)
    def solved(self, project: Project) -> None:
        assert project.run("solve").code == 0

    @pytest.mark.parametrize(
        ("change", "key", "finding"),
        [
            (
                lambda table: package(table, "beta").update(marker="sys_platform == 'win32'"),
                "marker",
                "beta 2.0 is locked for linux/amd64, and its marker `sys_platform == 'win32'` fails there",
            ),
            (
                lambda table: package(table, "beta").update({"requires-python": ">=3.13"}),
                'requires-python = ">=3.13"',
                "beta 2.0 needs python >=3.13, the stack of linux/amd64 has python 3.12",
            ),
            (
                lambda table: table.update(environments=["sys_platform == 'linux'"]),
                "environments",
                "`environments` lets installers in on linux/arm64 with python 3.12, for which nothing was solved",
            ),
            (
                lambda table: table["packages"].append(package(table, "beta")),
                'name = "beta"',
                "beta is locked twice for linux/amd64, both times as 2.0, which installers refuse",
            ),
            (
                lambda table: package(table, "alpha")["dependencies"].append({"name": "evil"}),
                '    { name = "evil" }',
                "alpha 2.0 depends on evil, which is not locked",
            ),
            (
                lambda table: package(table, "beta")["wheels"][0].update(
                    url="https://ada:pass@example.org/beta-2.0-py3-none-any.whl"
                ),
                'url = "https://ada:',
                "the address of beta 2.0 holds a login, which whoever has this lock can read",
            ),
            (
                lambda table: package(table, "beta")["wheels"][0].update(url="wheels/beta-2.0-py3-none-any.whl"),
                'url = "wheels/',
                "`wheels/beta-2.0-py3-none-any.whl` of beta 2.0 is not the address of a file that others could download",
            ),
            (
                lambda table: package(table, "beta")["wheels"][0].update(name="beta-2.0-py3-none-win_amd64.whl"),
                'name = "beta-2.0-py3-none-win_amd64.whl"',
                "beta 2.0 is locked for linux/amd64, and no file of it is: beta-2.0-py3-none-win_amd64.whl",
            ),
        ],
        ids=["marker", "python", "environments", "twice", "dependency", "login", "relative", "tag"],
    )
    def test_are_told_with_their_line(self, project: Project, change: Any, key: str, finding: str) -> None:  # noqa: ANN401
        rewritten(project, change)
        lines = (project.folder / LOCK).read_text(encoding="utf-8").splitlines()
        found = [number for number, line in enumerate(lines, start=1) if line.startswith(key)]
        out = checked(project)
        assert f"  no: {finding}  ({LOCK}:" in out, out
        told = int(out.partition(f"{finding}  ({LOCK}:")[2].partition(")")[0])
        assert told in found

    def test_packages_are_for_a_python(self, project: Project) -> None:
        project.write(changed("runs: host", "image: {}", "outputs: []"))
        assert project.run("solve").code == 0
        rewritten(project, lambda table: table["tool"]["provision"]["platforms"][0]["stack"].pop("python"))
        text = "the stack of linux/amd64 names no python, and packages are for one"
        assert f"  no: {text}  ({LOCK}:" in checked(project)

    def test_two_files_for_one_platform_are_one_too_many(self, project: Project) -> None:
        def add(table: dict[str, Any]) -> None:
            wheels = package(table, "beta")["wheels"]
            wheels.append({**wheels[0], "name": "beta-2.0-cp312-cp312-linux_x86_64.whl", "hashes": {"sha256": "0" * 64}})

        rewritten(project, add)
        both = "beta-2.0-py3-none-any.whl, beta-2.0-cp312-cp312-linux_x86_64.whl"
        finding = f"beta 2.0 has 2 files for linux/amd64, and one each is what was solved: {both}"
        assert f"  no: {finding}  ({LOCK}:" in checked(project)

    @pytest.mark.parametrize("key", ["vcs", "directory"])
    def test_a_checkout_or_a_folder_has_no_hash(self, project: Project, key: str) -> None:
        sources = {"vcs": {"type": "git", "url": "https://example.org/x", "commit-id": "0" * 40}, "directory": {"path": "."}}

        def exchange(table: dict[str, Any]) -> None:
            beta = package(table, "beta")
            del beta["wheels"]
            beta[key] = sources[key]

        rewritten(project, exchange)
        outcome = project.run("check")
        assert outcome.code == 2
        assert (
            "`beta` names no wheel, source distribution or archive, and what a checkout or a folder holds has no hash"
            in outcome.err
        )
