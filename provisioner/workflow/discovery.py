"""Find the environments of a repository: its locks, specs without a lock, and rendered files whose lock is gone.

Any file may be named: a spec, a host profile or a rendered file leads to the locks of the environments that it belongs to.
"""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import tomli
from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import ProvisionError, UsageError
from provisioner.grounds.finding import OrphanedOutput, SharedName, TwinLock, UnsolvedSpec
from provisioner.lock.format.file import was_ours
from provisioner.outputs import OUTPUTS
from provisioner.render.header import is_rendered, rendered_from
from provisioner.spec.load import host_paths, load_spec
from provisioner.spec.model import SpecFile
from provisioner.workflow.git import files_in, was_committed, work_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.finding import Finding
    from provisioner.spec.model import Spec, TargetSpec

_LOCK = re.compile(r"pylock\.[^.]+\.toml")
_OWN_LINE = re.compile(r'^(name|spec-file|target|runs) = (".*")[ \t]*$', re.MULTILINE)
_PLAIN = re.compile(r'"[\w./ -]*"')
_TOP_KEY = re.compile(r"^([A-Za-z_][\w-]*)[ \t]*:", re.MULTILINE)
_TABLE = re.compile(r"^\[tool\.provision(?:\]|\.)", re.MULTILINE)

_SPEC_KEYS = frozenset(SpecFile.__struct_encode_fields__)
_ASKS = frozenset({"requires", "packages-from"})
_SAYS_WHERE = frozenset({"target", "targets", "accelerator", "image", "runs", "outputs", "policy"})
"""With one of these, `packages:` is that of a spec: pnpm and Melos have lists of workspaces under this key."""

_USUAL_NAMES = ("provision.yaml", ".provision.yaml")

_RENDERED = frozenset(output.file_name for output in OUTPUTS.values())
_RENDERED_ENDS = tuple(f".{name}" for name in _RENDERED)

_PASSED_OVER = frozenset({"node_modules", "site-packages", "__pycache__"})


class Scope(Struct, frozen=True, kw_only=True):
    """What to check: `locks`, `strays` (files that are a finding by themselves), and `skipped`, of no environment.

    `missing` are paths at which there is nothing, never was, and nothing is to be.
    """

    locks: tuple[Path, ...]
    strays: tuple[tuple[Path, Finding], ...] = ()
    skipped: tuple[Path, ...] = ()
    missing: tuple[Path, ...] = ()


class LockHead(Struct, frozen=True, kw_only=True):
    """The few values of a lock that tell which environment it is of; `spec` is the resolved path of its spec."""

    name: str = ""
    spec: Path
    spec_file: str
    target: str = ""
    runs: str = ""


def scope_of(paths: Sequence[Path]) -> Scope:
    """Return what some paths are about: folders with everything below them, and files with the environments they belong to.

    A file that is gone is of the environment that lacks it, and a link is what it leads to. In a work tree of git its ignored
    files are passed over; hidden folders and virtual environments always are. Raises `UsageError` for folders without an
    environment.
    """
    locks: dict[Path, None] = {}
    strays: dict[Path, Finding] = {}
    skipped: list[Path] = []
    missing: list[Path] = []
    for path in map(_followed, paths):
        if path.is_dir():
            inside = Folder(path)
            locks.update(dict.fromkeys(inside.locks))
            strays.update(inside.strays())
        elif _LOCK.fullmatch(path.name) and path.exists():
            locks[path] = None
        else:
            found = _around(path).of(path)
            locks.update(dict.fromkeys(found.locks))
            strays.update(found.strays)
            skipped += found.skipped
            missing += found.missing
    if not (locks or strays or skipped or missing):
        shown = ", ".join(f"`{path}`" for path in paths)
        raise UsageError(
            f"there is no lock (pylock.NAME.toml) and no spec in {shown}",
            hints=("`provision init` writes a spec, `provision solve` locks it",),
        )
    return Scope(locks=tuple(locks), strays=tuple(strays.items()), skipped=tuple(skipped), missing=tuple(missing))


def name_findings(locks: Sequence[Path]) -> Iterator[tuple[Path, Finding]]:
    """Yield each lock beside which another one is of the same spec and target, and the first of those that share a name."""
    heads = {path: head for path in locks if (head := head_of(path)) is not None}
    by_name: dict[str, list[Path]] = {}
    by_spec: dict[tuple[Path, str, str], list[Path]] = {}
    for path, head in heads.items():
        by_name.setdefault(head.name, []).append(path)
        by_spec.setdefault((head.spec, head.target, head.runs), []).append(path)
    for path, head in heads.items():
        twins = [one for one in by_spec[head.spec, head.target, head.runs] if one != path and one.parent == path.parent]
        if twins and head.spec.is_file():
            yield path, TwinLock(object=head.spec_file, other=str(twins[0]))
        others = [one for one in by_name[head.name] if heads[one].spec != head.spec]
        if others and path == by_name[head.name][0]:  # said once for all of them
            yield path, SharedName(object=head.name, others=tuple(map(str, others)))


def head_of(lock: Path) -> LockHead | None:
    """Return the values of a lock that tell which environment it is of; None for a file that is no lock of this program."""
    text = _text(lock)
    if not was_ours(text):
        return None
    own = text[max(0, text.find("\n[tool.provision]")) :]
    found: dict[str, str] = {}
    for match in _OWN_LINE.finditer(own):
        key, spelled = match.groups()
        try:
            is_plain = _PLAIN.fullmatch(spelled)
            found.setdefault(key, spelled[1:-1] if is_plain else tomli.loads(f"x = {spelled}")["x"])
        except tomli.TOMLDecodeError:
            continue
    spec_file = found.get("spec-file", "")
    return LockHead(
        name=found.get("name", ""),
        spec=Path(os.path.realpath(lock.parent / spec_file)),
        spec_file=spec_file,
        target=found.get("target", ""),
        runs=found.get("runs", ""),
    )


class Folder:
    """A folder and the environments below it; the paths that it returns begin as `path` does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def files(self) -> list[Path]:
        """Every file below the folder that is neither ignored, nor in a hidden folder or a virtual environment.

        Without links to others of these.
        """
        tracked = files_in(self.path)
        found = _walked(self.path) if tracked is None else [one for one in tracked if not _is_passed_over(one.parts[:-1])]
        present = [self.path / one for one in found if tracked is None or (self.path / one).is_file()]
        links = {path: Path(os.path.realpath(path)) for path in present if path.is_symlink()}
        own = {Path(os.path.realpath(path)) for path in present if path not in links} if links else set()
        return [path for path in present if path not in links or links[path] not in own]

    @cached_property
    def locks(self) -> list[Path]:
        """Every lock below the folder."""
        return [path for path in self.files if _LOCK.fullmatch(path.name)]

    @cached_property
    def heads(self) -> dict[Path, LockHead]:
        """The locks of this program, each with the values that tell which environment it is of."""
        return {path: head for path in self.locks if (head := head_of(path)) is not None}

    def strays(self) -> Iterator[tuple[Path, Finding]]:
        """Yield each spec without a lock, and each rendered file whose lock is gone."""
        specs = [path for path in self.files if is_spec(path)]
        solved = {head.spec for head in self.heads.values()}
        if any(Path(os.path.realpath(path)) not in solved for path in specs):
            solved |= {head.spec for head in _around(self.path / "_").heads.values()}  # locks written with --out elsewhere
        unreadable = {path.parent for path in self.locks if path not in self.heads}  # one of them may be its lock
        for path in specs:
            if Path(os.path.realpath(path)) not in solved and path.parent not in unreadable:
                yield path, UnsolvedSpec(object=str(path))
        for path in self.files:
            if path.name in _RENDERED or path.name.endswith(_RENDERED_ENDS):
                yield from self._orphan(path)

    def of(self, path: Path) -> Scope:
        """Return the environments that a file belongs to."""
        real = Path(os.path.realpath(path))
        locks = [lock for lock, head in self.heads.items() if head.spec == real]
        if not locks and is_spec(path):
            return Scope(locks=(), strays=((path, UnsolvedSpec(object=str(path))),))
        if not locks and (orphan := tuple(self._orphan(path))):
            return Scope(locks=(), strays=orphan)
        locks = locks or self._rendering(path) or self._beside(path) or [one for one in self.heads if self._reads(one, path)]
        if locks:
            return Scope(locks=tuple(locks))
        if path.exists():
            return Scope(locks=(), skipped=(path,))
        unsolved = [
            (one, finding) for one, finding in self.strays() if one.parent == path.parent and _LOCK.fullmatch(path.name)
        ]
        if unsolved:
            return Scope(locks=(), strays=tuple(unsolved))
        return Scope(locks=(), skipped=(path,)) if was_committed(path) else Scope(locks=(), missing=(path,))

    def _orphan(self, path: Path) -> Iterator[tuple[Path, Finding]]:
        name = rendered_from(path)
        if name and not self._rendering(path):
            yield path, OrphanedOutput(file=str(path), lock=name)

    def _rendering(self, path: Path) -> list[Path]:
        """Return the lock that a rendered file names in its header; an output may lie in a folder below its lock."""
        name = rendered_from(path)
        above = _above(path, self.path) if name else ()
        return next(([folder / name] for folder in above if (folder / name).is_file()), [])

    def _beside(self, path: Path) -> list[Path]:
        """Return the locks whose helper file, local wheel, evidence or output a file is, even one edited beyond recognition."""
        if is_rendered(path) or path.parent.name == "wheels":
            above = path.parent.parent
            return [lock for lock in sorted(above.glob("pylock.*.toml")) if _LOCK.fullmatch(lock.name)]
        locks = (lock for folder in _above(path, self.path) for lock in sorted(folder.glob("pylock.*.toml")))
        near = [lock for lock in locks if _LOCK.fullmatch(lock.name)]
        named = [lock for lock in near if lock.parent == path.parent and path.name.startswith(f"{lock.stem}.")]
        return named or [lock for lock in near if self._writes(lock, path)]

    def _writes(self, lock: Path, path: Path) -> bool:
        head = head_of(lock)
        try:
            files = load_spec(head.spec).spec.files if head is not None else ()
        except ProvisionError:
            return False
        written = (name for one in files for name in (one.path, *OUTPUTS[one.format].helper_paths))
        return any(os.path.realpath(lock.parent / name) == os.path.realpath(path) for name in written)

    def _reads(self, lock: Path, path: Path) -> bool:
        """Return whether the spec of a lock reads a file: host profiles, and lists of packages."""
        spec_path = self.heads[lock].spec
        text = _text(spec_path)
        if path.name not in text and path.stem not in text:
            return False
        try:
            loaded = load_spec(spec_path)
        except ProvisionError:
            return False
        from provisioner.host.inventory import file_and_name  # with a reader for each kind of inventory

        targets = (loaded.spec.target, *loaded.spec.targets.values())
        hosts = (one for target in targets for one in host_paths(_with(loaded.spec, target), spec_path))
        real = os.path.realpath(path)
        files = (*loaded.files, *(file_and_name(one)[0] for one in hosts))
        return any(os.path.realpath(one) == real for one in files)


def is_spec(path: Path) -> bool:
    """Return whether a YAML file, or a `pyproject.toml`, is a spec: no key is another one, and they say what is wanted.

    A file with the usual name of a spec is one even with another key, which may be misspelt: it must not pass unseen.
    """
    if path.name == "pyproject.toml":
        return _TABLE.search(_text(path)) is not None
    if path.suffix not in {".yaml", ".yml"}:
        return False
    keys = set(_TOP_KEY.findall(_text(path)))
    is_usual = path.name == _USUAL_NAMES[0] or path.name.endswith(_USUAL_NAMES[1])
    asks = keys & _ASKS or ("packages" in keys and (is_usual or keys & _SAYS_WHERE))
    return bool(asks) and (is_usual or keys <= _SPEC_KEYS)


def _with(spec: Spec, target: TargetSpec) -> Spec:
    return replace(spec, target=target)


def _around(path: Path) -> Folder:
    """Return the folder in which the environments of a file are sought: its work tree, else the working directory around it.

    A path relative to the working directory stays so.
    """
    folder = next(one for one in (*path.parents, Path("/")) if one.is_dir())  # the folder of the file may be gone with it
    root = work_tree(folder)
    here = Path.cwd()
    if root is None:
        root = here if path.absolute().is_relative_to(here) else folder.absolute()
    return Folder(root if path.is_absolute() else Path(os.path.relpath(root)))


def _above(path: Path, root: Path) -> Iterator[Path]:
    """Yield the folder of a file and those above it, up to `root`."""
    top = root.absolute()
    folder = path.parent
    while True:
        yield folder
        if folder.absolute() == top or not folder.absolute().is_relative_to(top) or folder == folder.parent:
            return
        folder = folder.parent if folder != Path() else Path("..")


def _followed(path: Path) -> Path:
    """Return the file that a link leads to, relative to the working directory if the link is; any other path as it is."""
    if not path.is_symlink() or path.is_dir() or not path.exists():
        return path
    real = os.path.realpath(path)
    return Path(real if path.is_absolute() else os.path.relpath(real))


def _is_passed_over(folders: Sequence[str]) -> bool:
    return any(name.startswith(".") or name in _PASSED_OVER for name in folders)


def _walked(folder: Path) -> list[Path]:
    found = []
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = [one for one in folders if not _is_passed_over((one,)) and not (here / one / "pyvenv.cfg").exists()]
        found += [(here / name).relative_to(folder) for name in names]
    return sorted(found)


def _text(path: Path) -> str:
    if not path.is_file():
        return ""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
