"""What a lock and its successor differ in, with what the index says of it, and what holds a package back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from provisioner.errors import UnavailableError
from provisioner.grounds.finding import FileDrift
from provisioner.grounds.requirement import Subject
from provisioner.index.model import Environment, PackageRelease
from provisioner.lock.diff.relock import held_back, successor_changes
from provisioner.words.change import cause_words
from tests.extras_named import applicable
from tests.lock_examples import DATEUTIL, PACKAGES, SIX, cpu_stack, lock_of

if TYPE_CHECKING:
    from packaging.utils import NormalizedName

    from provisioner.grounds.change import Cause
    from provisioner.lock.format.model import Lock

SIX_1_16 = Subject("six", "1.16.0")
ENVIRONMENT = Environment(platform="linux/amd64", python="3.12")


def lock_with(six: str, *, requires: tuple[str, ...] = ("six>=1.5",), uploaded: str | None = None) -> Lock:
    """The small lock with another release of six, uploaded then."""
    name = f"six-{six}-py2.py3-none-any.whl"
    file = replace(SIX, filename=name, upload_time=uploaded) if six != "1.17.0" or uploaded else SIX
    packages = (
        replace(PACKAGES[0], version=six, file=file),
        replace(PACKAGES[1], requires=requires, file=replace(DATEUTIL, upload_time="2026-01-01T00:00:00Z")),
    )
    return lock_of(replace(cpu_stack(), packages=packages))


def release(name: str, version: str, *, uploaded: str | None = None, why_not: str = "") -> PackageRelease:
    file = replace(SIX, filename=f"{name}-{version}-py3-none-any.whl", upload_time=uploaded)
    return PackageRelease.of(name=canonicalize_name(name), version_text=str(Version(version)), file=file, why_not=why_not)


def causes(found: tuple[Cause, ...]) -> tuple[tuple[str, str, str], ...]:
    """Each cause by its kind, the change that it follows, and its words."""
    return tuple((cause.kind, cause.subject, cause_words(cause)) for cause in found)


@dataclass
class Shelf:
    """An index that offers these releases, newest first."""

    offered: tuple[PackageRelease, ...]
    requires: tuple[str, ...] = ()
    is_lost: bool = False

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        assert index == "pypi", "a name is looked up where the lock has it from"
        return tuple(one for one in self.offered if one.name == name)

    def requirements(self, release: PackageRelease) -> tuple[Requirement, ...]:
        if self.is_lost:
            raise UnavailableError(f"no metadata of {release.name}")
        return applicable((Requirement(text) for text in self.requires), ("",))


def test_a_change_that_the_index_explains_has_its_words_first() -> None:
    drift = FileDrift(
        kind="yanked", package=SIX_1_16, filename="six-1.16.0-py2.py3-none-any.whl", index="pypi", offered="broken"
    )
    old, new = lock_with("1.16.0"), lock_with("1.17.0", requires=("six>=1.17",))
    found = [change for change in successor_changes(old, new, [drift]).changes if change.subject == "six"]
    assert [causes(change.causes) for change in found] == [
        (
            ("index", "", "six 1.16.0 is yanked: broken"),
            ("follows", "python-dateutil", "python-dateutil 2.9.0.post0 requires `six>=1.17`, which 1.16.0 is not"),
        )
    ]


def test_another_upload_time_explains_nothing() -> None:
    drift = FileDrift(kind="redated", package=SIX_1_16, filename="six", index="pypi")
    old, new = lock_with("1.16.0"), lock_with("1.17.0", uploaded="2025-01-01T00:00:00Z")
    found = [change for change in successor_changes(old, new, [drift]).changes if change.subject == "six"]
    text = "1.17.0 is out since 2025-01-01, and nothing recorded rules it out"
    assert [causes(change.causes) for change in found] == [(("index", "", text),)]


def test_of_a_release_without_a_date_nothing_is_made_up() -> None:
    [change] = [one for one in successor_changes(lock_with("1.16.0"), lock_with("1.17.0.1")).changes if one.subject == "six"]
    assert [cause.kind for cause in change.causes] == ["unknown"]


def test_the_newest_of_everything_holds_nothing_back() -> None:
    shelf = Shelf((release("six", "1.17.0"), release("six", "1.16.0"), release("python-dateutil", "2.9.0.post0")))
    assert list(held_back(lock_with("1.17.0"), shelf, ENVIRONMENT)) == []


def test_a_release_that_no_installer_would_take_is_not_missed() -> None:
    shelf = Shelf((release("six", "2.0", why_not="yanked"), release("six", "1.17.0")))
    assert list(held_back(lock_with("1.17.0"), shelf, ENVIRONMENT)) == []


def test_what_a_package_of_the_answer_requires_holds_back() -> None:
    shelf = Shelf((release("six", "2.0", uploaded="2026-03-01T00:00:00Z"),))
    [held] = held_back(lock_with("1.17.0", requires=("six<2",)), shelf, ENVIRONMENT)
    assert (held.name, held.version, held.newest, held.uploaded) == ("six", "1.17.0", "2.0", "2026-03-01")
    text = "python-dateutil 2.9.0.post0 requires `six<2`"
    assert causes(held.causes) == (("follows", "python-dateutil", text),)


def test_what_the_newest_release_requires_itself_holds_back() -> None:
    shelf = Shelf((release("six", "2.0"),), requires=("python-dateutil>=3", "absent>=1", "six>9; python_version < '3'"))
    [held] = held_back(lock_with("1.17.0"), shelf, ENVIRONMENT)
    text = "six 2.0 requires `python-dateutil>=3`, and the answer has python-dateutil 2.9.0.post0"
    assert (held.uploaded, causes(held.causes)) == ("", (("follows", "python-dateutil", text),))


def test_metadata_that_cannot_be_had_is_the_reason_then() -> None:
    [held] = held_back(lock_with("1.17.0"), Shelf((release("six", "2.0"),), is_lost=True), ENVIRONMENT)
    assert causes(held.causes) == (("index", "", "six 2.0 cannot be taken: no metadata of six"),)


def test_what_the_spec_bounds_without_requiring_it_holds_back() -> None:
    lock = replace(lock_with("1.17.0"), asked={"constraints.six": "<2", "overrides.six": "==1.17.0", "constraints.idna": "<2"})
    [held] = held_back(lock, Shelf((release("six", "2.0"),)), ENVIRONMENT)
    assert [cause_words(cause) for cause in held.causes] == [
        "the spec constrains it to `six<2`",
        "the spec overrides it with `six==1.17.0`",
    ]


def test_what_nothing_explains_is_unknown() -> None:
    [held] = held_back(lock_with("1.17.0"), Shelf((release("six", "2.0"),)), ENVIRONMENT)
    text = f"unknown: nothing in the answer rules it out by itself; `provision explain {held.name}` tries it"
    assert causes(held.causes) == (("unknown", "", text),)


def test_what_the_old_version_required_itself_and_is_not_there_now_moves_it() -> None:
    """No request and no package rules dateutil 2.9 out: it needs a six that the new lock does not have."""
    file = replace(DATEUTIL, filename="python_dateutil-2.8.0-py2.py3-none-any.whl")
    older = replace(PACKAGES[1], version="2.8.0", requires=("six",), file=file)
    old = lock_with("1.17.0", requires=("six>=1.17",))
    new = lock_of(replace(cpu_stack(), packages=(replace(PACKAGES[0], version="1.16.0"), older)))
    [change] = [one for one in successor_changes(old, new).changes if one.subject == "python-dateutil"]
    text = "python-dateutil 2.9.0.post0 requires `six>=1.17`, and six is 1.16.0 now"
    assert causes(change.causes) == (("follows", "six", text),)
