"""Hold provision's answers, conflicts and fixes against uv's on random problems of real packages.

For each number from the first to the last the problem of `random_problems.py` is solved, and uv is asked about what was told:

- `consistent`, `closure`: uv takes all pins of an answer at once, and needs no more and no less;
- `newest`: no named project can be newer, on any Python asked for, while those named before it stay;
- `conflict`: uv refuses the requests of a conflict on every Python, and answers without any one of them (`second_opinion.py`);
- `fix`: the patch of the first hint leads to an answer that uv takes; of several conflicts, it leaves the others' requests;
- `second`: after the first hint of one conflict no more conflicts are left than were told beside it;
- `nearest`: between what was asked and the version of a fix there is none that uv has an answer with;
- `more`: with source distributions, more Pythons or a newer driver permitted there is still an answer, and no older one.

What uv cannot know is told as explained: rows of the matrix, pre-releases, indexes out of reach. Each problem has a record.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import urllib.request
from contextlib import suppress
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from answers import answered
from hard_problems import PATCHES, Problem, bounds, load, spec, uv_words
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version
from programs import environment
from random_problems import random_problem
from ruamel.yaml import YAML
from second_opinion import UNDISPUTED, opinion
from usage import measured

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.scenarios.applied import merged  # noqa: E402 - the tests are no package that is installed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hard_problems import Host
    from usage import Usage

    Note = Callable[[str, str], None]
    """Keeps what was found of a law."""

LIMIT = 150.0
"""Seconds after which a run is ended."""

ANSWER, NO, UNKNOWN = 0, 1, 3
"""The exit codes of provision."""

NEWER_DRIVER = "580.95.05"
MOST_BETWEEN = 6
"""The number of versions between the asked one and that of a fix that uv is asked about: half of them at either end."""

OF_A_BUILD = re.compile(r"^(nvidia-|triton$|pytorch-triton|cuda-)")
"""Distributions that builds of other indexes than PyPI require in other versions."""

IMPLIED = {"setuptools", "numpy", "torch", "tensorflow", "keras"}
"""What distributions need by the matrix and do not declare."""

FROM, UNTIL = "2021-01-01", "2026-11-20"
"""The days between which a release was published that a problem may name."""


class Releases:
    """The releases of projects on an index."""

    def __init__(self, index: str) -> None:
        self._index, self._known = index, {}  # type: str, dict[str, dict[Version, str]]

    def all(self, name: str) -> dict[Version, str]:
        """Return the final releases that have a wheel, oldest first, each with the day of its newest file."""
        if name not in self._known:
            accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
            with urllib.request.urlopen(
                urllib.request.Request(f"{self._index}/{name}/", headers=accept), timeout=LIMIT
            ) as page:
                files = json.load(page)["files"]
            found: dict[Version, str] = {}
            for file in files:
                with suppress(InvalidWheelFilename):
                    version = parse_wheel_filename(file["filename"])[1]
                    if not (file.get("yanked") or version.is_prerelease or version.local):
                        found[version] = file.get("upload-time", "")[:10]
            self._known[name] = dict(sorted(found.items()))
        return self._known[name]

    def recent(self, name: str) -> list[str]:
        """Return the releases that a problem may name, oldest first."""
        return [str(version) for version, day in self.all(name).items() if FROM <= day <= UNTIL]


class Bench:
    """Both resolvers, the index they ask, and a folder for what they write."""

    def __init__(self, scratch: Path, index: str, provision: str) -> None:
        self.hosts, self.releases = load().hosts, Releases(index)
        self._scratch, self._index, self._provision = scratch, index, provision
        self.folder = scratch
        self._asked: dict[object, dict[str, str] | None] = {}

    def begin(self, folder: Path) -> None:
        """Write what belongs to the next problem into a folder of its own."""
        self.folder = folder
        self._asked.clear()
        folder.mkdir(parents=True, exist_ok=True)

    def solve(self, text: str, name: str) -> tuple[int, dict[str, Any], Usage]:
        """Return the exit code of provision for a spec, and its answer as JSON."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "provision.yaml").write_text(text, encoding="utf-8")
        home = str(self._scratch / "cache-provision")
        settings = environment(
            HOME=home, XDG_CACHE_HOME=home, PIP_CONFIG_FILE="/dev/null", PIP_INDEX_URL=self._index, NO_COLOR="1"
        )
        command = [self._provision, "solve", str(folder / "provision.yaml"), "--out", str(folder / "out"), "--format", "json"]
        usage = measured(command, settings, limit=LIMIT, output=folder / "out.txt")
        begin = re.search(r"^\{", usage.output, re.MULTILINE)
        told = json.JSONDecoder().raw_decode(usage.output[begin.start() :])[0] if begin is not None else {}
        return usage.code, told, usage

    def uv(
        self, problem: Problem, packages: Sequence[str], python: str, pins: Sequence[str] = (), wheels: Sequence[str] = ()
    ) -> dict[str, str] | None:
        """Return uv's versions; None where it refuses. Of the distributions in `wheels` it may take final wheels alone."""
        key = (*packages, "", python, "", *sorted(pins), "", *wheels, problem.allow)
        if key not in self._asked:
            listed, bound, answer = (self.folder / name for name in ("asked.in", "pins.txt", "answer.txt"))
            listed.write_text("".join(f"{one}\n" for one in packages), encoding="utf-8")
            bound.write_text("".join(f"{one}\n" for one in pins), encoding="utf-8")
            answer.unlink(missing_ok=True)
            uv = str(Path(sys.executable).parent / "uv")
            command = uv_words(problem, self.hosts[problem.host], python, uv=uv, interpreter=sys.executable)
            for name in wheels:
                command += ["--only-binary", name, "--prerelease-package", f"{name}=explicit"]
            command += [str(listed), "--constraint", str(bound), "--output-file", str(answer)]
            cache = str(self._scratch / "cache-uv")
            settings = environment(
                HOME=cache, UV_CACHE_DIR=cache, UV_DEFAULT_INDEX=self._index, UV_PYTHON_DOWNLOADS="never", NO_COLOR="1"
            )
            usage = measured(command, settings, limit=LIMIT, output=self.folder / "uv.txt")
            self._asked[key] = (answered(answer) or {}) if usage.code == ANSWER else None
        return self._asked[key]

    def pip(self, requirement: str, python: str) -> bool:
        """Return whether pip has a wheel for a requirement, whatever that requires."""
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", requirement]
        command += ["--only-binary", ":all:", "--python-version", python, "--target", str(self.folder / "pip")]
        settings = environment(HOME=str(self._scratch), PIP_CONFIG_FILE="/dev/null", PIP_INDEX_URL=self._index)
        return measured(command, settings, limit=LIMIT, output=self.folder / "pip.txt").code == ANSWER


class Judgement:
    """What uv makes of what provision told about one problem; `notes` are its findings, each with the law that it is of."""

    def __init__(self, bench: Bench, problem: Problem) -> None:
        self.bench, self.problem = bench, problem
        self.notes: list[tuple[str, str]] = []

    @cached_property
    def host(self) -> Host:
        return self.bench.hosts[self.problem.host]

    def note(self, law: str, what: str) -> None:
        self.notes.append((law, what))

    def answer(self, problem: Problem, told: dict[str, Any], *, law: str = "") -> None:
        """Judge the pins of an answer; that they are the newest is of the problem itself, not of a fix, which has its `law`."""
        packages = {name: version.partition("+")[0] for name, version in told.get("packages", {}).items()}
        python = ".".join(told["stack"]["python"].split(".")[:2])
        if not packages or python not in PATCHES:
            return
        pins = [f"{name}=={version}" for name, version in packages.items()]
        theirs = self.bench.uv(problem, problem.packages, python, pins)
        if theirs is None and any("+" in version for version in told["packages"].values()):
            pins = [one for one in pins if not OF_A_BUILD.match(one)]
            theirs = self.bench.uv(problem, problem.packages, python, pins)
        self.note(f"{law}consistent", "agreed" if theirs is not None else "DISPUTED: uv refuses the pins together")
        if theirs is not None:
            missing, needless = (
                sorted(name for name in some if not OF_A_BUILD.match(name))
                for some in (theirs.keys() - packages.keys(), packages.keys() - theirs.keys() - IMPLIED)
            )
            what = f"DISPUTED: missing {missing}, needless {needless}"
            self.note(f"{law}closure", what if missing or needless else "agreed")
        if not law:
            self._newest(packages, python)

    def _newest(self, packages: dict[str, str], python: str) -> None:
        frameworks = bounds(packages)
        ahead: list[str] = []
        for name in names_of(self.problem):
            if name not in packages or f"{name}=={packages[name]}" in frameworks:
                continue
            newer = f"{name}>{packages[name]}"
            what = "agreed"
            for one in dict.fromkeys((python, *reversed(self.problem.pythons))):
                theirs = self.bench.uv(self.problem, [*self.problem.packages, newer], one, [*ahead, *frameworks])
                if theirs is not None:
                    is_prerelease = Version(theirs[name]).is_prerelease
                    why = "explained: a pre-release" if is_prerelease else self._why_not(name, packages[name], one, ahead)
                    what = f"{why}: {name} {packages[name]}, with uv {theirs[name]} on {one}"
                    break
            self.note("newest", what)
            ahead.append(f"{name}=={packages[name]}")

    def _why_not(self, name: str, version: str, python: str, ahead: Sequence[str]) -> str:
        """Ask provision for what uv says can be had, and return why that cannot be had."""
        pins = {one.partition("==")[0]: one.partition("==")[2] for one in ahead}
        asked = []
        for one in map(Requirement, self.problem.packages):
            project = canonicalize_name(one.name)
            if project in pins:
                one.specifier &= f"=={pins[project]}"
            elif project == name:
                one.specifier &= f">{version}"
            asked.append(str(one))
        changed = msgspec.structs.replace(self.problem, packages=tuple(asked), python=python)
        code, told, _ = self.bench.solve(spec(changed, self.host), f"newer-{name}")
        members = [member for conflict in conflicts_of(told) for member in conflict["members"]]
        rows = [one["text"] for one in members if one["where"].startswith("matrices/") or one["kind"] == "fact"]
        if code == ANSWER:
            return "DISPUTED: provision itself has a newer answer"
        return f"explained: {rows[0]}" if rows else f"DISPUTED: exit code {code}"

    def conflicts(self, told: dict[str, Any]) -> None:
        """Judge all conflicts of a problem, and their first fixes."""
        every = conflicts_of(told)
        document = YAML(typ="safe").load(spec(self.problem, self.host))
        for number, conflict in enumerate(every):
            found = opinion(conflict, self.problem, self.host, self._answers, self.bench.pip)
            is_undisputed = found.verdict in UNDISPUTED
            self.note("conflict", found.verdict if is_undisputed else f"DISPUTED: {found.told}: {found.verdict}")
            if not conflict["hints"]:
                self.note("fix", "NONE")
                continue
            hint = conflict["hints"][0]
            self._fix(document, hint, f"fix{number}", others=len(every) - 1)
            if found.verdict != "of the system":
                self._nearest(hint)

    def _answers(self, packages: Sequence[str], python: str, wheels: Sequence[str]) -> bool:
        return self.bench.uv(self.problem, packages, python, (), wheels) is not None

    def _fix(self, document: dict[str, Any], hint: dict[str, Any], name: str, *, others: int) -> None:
        patch = hint.get("patch", {})
        if "spec" not in patch or "hosts" in patch:
            self.note("fix", "of the machine")
            return
        changed = merged(document, patch["spec"])
        asked = tuple(changed.get("packages", ()))
        after = msgspec.structs.replace(self.problem, packages=asked, python=str(changed["requires"].get("python", ">=3.8")))
        if len(asked) < len(self.problem.packages) and "leaving out" not in hint["text"]:
            self.note("fix", f"DISPUTED: the patch loses requests: {patch}")
            return
        stream = StringIO()
        YAML(typ="safe").dump(changed, stream)
        code, again, _ = self.bench.solve(stream.getvalue(), name)
        if others and code == NO:
            left = len(conflicts_of(again))
            self.note(
                "second", "agreed" if left <= others else f"DISPUTED: {left} conflicts after {hint['text']}, {others} told"
            )
        elif code == ANSWER:
            self.note("fix", "agreed")
            self.answer(after, again, law="fix: ")
        else:
            is_doubted = code == UNKNOWN and hint["verdict"] != "yes"
            self.note(
                "fix", "explained: an index is out of reach" if is_doubted else f"DISPUTED: {hint['text']}: exit code {code}"
            )

    def _nearest(self, hint: dict[str, Any]) -> None:
        changes = hint.get("changes", [])
        name, change = (changes[0]["component"], changes[0]["change"]) if changes else ("", "")
        asked = [one for one in map(Requirement, self.problem.packages) if canonicalize_name(one.name) == name]
        if len(changes) != 1 or not asked or not change.startswith("==") or "," in change:
            return
        target, every = Version(change.removeprefix("==")), list(self.bench.releases.all(name))
        inside = [one for one in every if one in asked[0].specifier]
        if not inside:
            return
        between = [one for one in every if inside[-1] < one < target or target < one < inside[0]]
        if len(between) > MOST_BETWEEN:
            between = between[: MOST_BETWEEN // 2] + between[-MOST_BETWEEN // 2 :]
        rest = [one for one in self.problem.packages if canonicalize_name(Requirement(one).name) != name]
        extras = f"[{','.join(sorted(asked[0].extras))}]" if asked[0].extras else ""
        for one in between:
            pin = f"{name}{extras}=={one}"
            for python in reversed(self.problem.pythons):
                if self.bench.uv(self.problem, [*rest, pin], python, bounds(hint.get("gives", {}))) is not None:
                    self.note("nearest", f"DISPUTED: {hint['text']}, and uv takes {pin} on {python}")
                    return
        self.note("nearest", "agreed")

    def more(self, told: dict[str, Any], seed: int) -> None:
        """Judge what comes of a problem where more is permitted: source distributions, Pythons or a newer driver, in turn."""
        law, problem, host = f"more {('sdist', 'python', 'driver')[seed % 3]}", self.problem, self.host
        if law == "more sdist":
            problem = msgspec.structs.replace(problem, allow=("sdist",))
        elif law == "more python":
            problem = msgspec.structs.replace(problem, python=">=3.8")
        else:
            host = msgspec.structs.replace(host, driver=NEWER_DRIVER)
        code, more, _ = self.bench.solve(spec(problem, host), "more")
        if code != ANSWER:
            self.note(law, f"DISPUTED: an answer becomes exit code {code}")
            return
        pairs = [(told["packages"].get(name), more["packages"].get(name)) for name in names_of(problem)]
        moved = next(((old, new) for old, new in pairs if old and new and public(old) != public(new)), None)
        is_older = moved is not None and public(moved[1]) < public(moved[0])
        self.note(law, f"DISPUTED: {moved}" if is_older else "agreed")


def names_of(problem: Problem) -> list[str]:
    """Return the names of what is asked for, in the order of the request."""
    return list(dict.fromkeys(canonicalize_name(Requirement(one).name) for one in problem.packages))


def public(version: str) -> Version:
    """Return a version without the label of its build."""
    return Version(version.partition("+")[0])


def conflicts_of(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all conflicts of a refusal; [] for anything else."""
    return told.get("conflicts") or [told[key] for key in ("conflict",) if key in told]


def judged(bench: Bench, seed: int) -> dict[str, Any]:
    """Return the record of one problem."""
    problem = random_problem(seed, sorted(bench.hosts), bench.releases.recent)
    found = Judgement(bench, problem)
    code, told, usage = bench.solve(spec(problem, found.host), "first")
    if code == ANSWER:
        found.answer(problem, told)
        found.more(told, seed)
    elif code == NO:
        found.conflicts(told)
    elif code != UNKNOWN:
        found.note("status", f"DISPUTED: exit code {code}")
    asked = {"packages": problem.packages, "python": problem.python, "host": problem.host, "allow": problem.allow}
    return {"seed": seed, **asked, "code": code, "processor": usage.processor, "notes": found.notes}


def main() -> None:
    """Read the command line, and judge each problem that has no record yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--scratch", type=Path, default=ROOT / "build" / "random", metavar="FOLDER")
    parser.add_argument("--index", default="https://pypi.org/simple", metavar="URL")
    parser.add_argument("--provision", default=str(Path(sys.executable).parent / "provision"), metavar="FILE")
    options = parser.parse_args()
    bench = Bench(options.scratch, options.index, options.provision)
    for seed in range(options.first, options.last + 1):
        record = options.scratch / "records" / f"{seed}.json"
        if record.exists():
            continue
        bench.begin(options.scratch / "work" / str(seed))
        found = judged(bench, seed)
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        disputed = [f"\n  {law}: {what}" for law, what in found["notes"] if "DISPUTED" in what or what == "NONE"]
        sys.stdout.write(f"{seed}: {found['code']} {' '.join(found['packages'])}{''.join(disputed)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
