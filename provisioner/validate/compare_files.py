"""Compare the files of an environment with the records of its packages, and the configuration of an image with its lock."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.evidence.report import FieldReport, agreement, unverified
from provisioner.lock.format.file import lock_digest
from provisioner.words.notation import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock
    from provisioner.render.image_config import ImageConfig
    from provisioner.validate.engine import Image
    from provisioner.validate.measurement import Files, Libraries, Measurement
    from provisioner.validate.published import Published

SHOWN = 5
"""The number of files that a note names; the rest are counted."""

_WATCHED = re.compile(
    r"NVIDIA_.+|CUDA_(VISIBLE_DEVICES|HOME|PATH)|(HIP|ROCR|GPU)_.+|HSA_.+|LD_(?!LIBRARY_PATH$).+|PYTHON(HOME|PATH|STARTUP|OPTIMIZE|NOUSERSITE)"
    r"|(XLA|TF|JAX|ORT|TORCH|PYTORCH|CUPY|TRITON|NCCL)_.+"
)
"""Variables that change which devices, libraries and modules a stack finds, or how it computes."""

_OF_BASE_IMAGES = re.compile(r"NVIDIA_(VISIBLE_DEVICES|DRIVER_CAPABILITIES|REQUIRE_CUDA|PRODUCT_NAME)|NCCL_VERSION")
"""Watched variables that NVIDIA's base images set (the Dockerfiles in gitlab.com/nvidia/container-images/cuda)."""

_OF_BASE_FOLDERS = re.compile(r"/usr/local/(nvidia|cuda(-[0-9.]+)?)(/[\w./-]*)?|/opt/rocm(-[0-9.]+)?(/[\w./-]*)?")
"""Folders that base images of NVIDIA and AMD put into LD_LIBRARY_PATH; another one comes before the libraries of wheels."""


_LOCK_LABEL = "dev.provision.lock.digest"
"""The label that names the lock of an image."""

_IS_SITE = re.compile(r"/(site|dist)-packages$")
"""Folders of installed packages; an environment has its own, and another one is that of the system or of a user."""


def compare_files(measurement: Measurement, published: Published) -> Iterator[FieldReport]:
    """Yield the fields about files, libraries and the path of modules.

    A file that differs from its RECORD, and is `published` so, is as locked: the wheel states a hash that is not the file's.
    """
    files = measurement.files
    if files is None:
        yield unverified("files", "as recorded", measurement.error("files") or "the files were not looked at")
        return
    yield _recorded(files, published)
    yield _unowned(files)
    if files.stale:
        yield agreement("bytecode", "of its source", f"{len(files.stale)} stale", agrees=False, note=_listed(files.stale))
    foreign = tuple(path for path in files.path if _IS_SITE.search(path) and not path.startswith(files.prefix))
    if files.unowned is not None and foreign:
        yield agreement("module path", "the environment", f"{len(foreign)} more", agrees=False, note=_listed(foreign))
    if files.libraries is not None:
        yield from _libraries(files.libraries)


def _recorded(files: Files, published: Published) -> FieldReport:
    misrecorded = tuple(path for path in files.changed if path in published.paths)
    changed = tuple(path for path in files.changed if path not in published.paths)
    wrong = [("changed", changed), *((kind, getattr(files, kind)) for kind in ("missing", "unreadable", "unrecorded"))]
    found = [(kind, paths) for kind, paths in (*wrong, ("misrecorded by their wheel", misrecorded)) if paths]
    measured = f"{files.compared} compared" + "".join(f", {len(paths)} {kind}" for kind, paths in found)
    notes = [f"{kind}: {_listed(paths)}" for kind, paths in found]
    if changed and published.unread:
        notes.append(f"whether a wheel was published so is not known: {published.unread}")
    agrees = not any(paths for _, paths in wrong)
    return agreement("files", "as recorded", measured, agrees=agrees, note="; ".join(notes))


def _unowned(files: Files) -> FieldReport:
    if files.unowned is None:
        return agreement("other files", "none", "not asked", agrees=True, note=f"{files.prefix} is no virtual environment")
    measured = f"{len(files.unowned)}" if files.unowned else "none"
    return agreement("other files", "none", measured, agrees=not files.unowned, note=_listed(files.unowned))


def _libraries(libraries: Libraries) -> Iterator[FieldReport]:
    wrong = [(kind, getattr(libraries, kind)) for kind in ("unresolved", "shadowed", "preloaded")]
    note = "; ".join(f"{kind}: {_listed(found)}" for kind, found in wrong if found)
    measured = counted(libraries.modules, "module") + "".join(f", {len(found)} {kind}" for kind, found in wrong if found)
    if not note and libraries.optional:
        note = f"parts that are not there: {_listed(libraries.optional)}"
    is_wrong = any(found for _, found in wrong)
    yield agreement("linked libraries", "all found", measured, agrees=not is_wrong, note=note)


def _listed(names: tuple[str, ...] | None) -> str:
    """Return the first names of a list, and the number of the others."""
    names = names or ()
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def compare_config(expected: ImageConfig, platform: str, image: Image, *, is_built_here: bool) -> Iterator[FieldReport]:
    """Yield the fields about the configuration of an image.

    An image that was built elsewhere may be an application on top: another user than root and its home, a longer entry point
    and labels of its own are its right.
    """
    yield agreement("image platform", platform, image.platform, agrees=image.platform == platform)
    yield _user(expected, image, is_built_here=is_built_here)
    length = len(expected.entrypoint)
    if length or is_built_here:
        entrypoint = image.entrypoint if is_built_here else image.entrypoint[:length]
        agrees = not length or entrypoint == expected.entrypoint
        note = "" if agrees else "the host is not checked before a command starts"
        yield agreement("entry point", " ".join(expected.entrypoint), " ".join(image.entrypoint), agrees=agrees, note=note)
    own = frozenset() if is_built_here else frozenset({"HOME"})
    yield from _variables(expected, image, own)
    for name, value in sorted(expected.labels.items()):
        if image.labels.get(name) != value and (is_built_here or name.startswith("dev.provision.")):
            found = image.labels.get(name, "")
            note = _of_another_lock(found) if name == _LOCK_LABEL else ""
            yield agreement(f"label {name}", value, found, agrees=False, note=note)


def compare_origin(lock: Lock, platform: str, image: Image) -> Iterator[FieldReport]:
    """Yield the fields of an image that has no configuration but its platform, and the label that names its lock.

    Without the label, the image may have been converted from another one, or built by hand: nothing is said against it then.
    """
    if image.platform:
        yield agreement("image platform", platform, image.platform, agrees=image.platform == platform)
    digest, found = lock_digest(lock), image.labels.get(_LOCK_LABEL)
    if found is not None:
        note = "" if found == digest else _of_another_lock(found)
        yield agreement(f"label {_LOCK_LABEL}", digest, found, agrees=found == digest, note=note)


def _of_another_lock(found: str) -> str:
    return "the image was built from another lock" if found else "the image does not say of which lock it was built"


def _user(expected: ImageConfig, image: Image, *, is_built_here: bool) -> FieldReport:
    is_root = image.user.partition(":")[0] in {"", "0", "root"}
    agrees = image.user == expected.user if is_built_here or is_root else True
    return agreement("user", expected.user, image.user or "root", agrees=agrees)


def _variables(expected: ImageConfig, image: Image, own: frozenset[str]) -> Iterator[FieldReport]:
    """Yield one field for each variable that differs, or one for all; those of `own` are the image's right."""
    different = [
        agreement(f"variable {name}", value, image.variables.get(name, ""), agrees=False)
        for name, value in sorted(expected.variables.items())
        if image.variables.get(name) != value and name not in own
    ]
    different += [
        agreement(f"variable {name}", f"{before}…", image.variables.get(name, ""), agrees=False)
        for name, before in sorted(expected.prefixes.items())
        if not image.variables.get(name, "").startswith(before)
    ]
    stated = {*expected.variables, *expected.prefixes}
    different += [
        agreement(f"variable {name}", "", value, agrees=False, note="not in the lock")
        for name, value in sorted(image.variables.items())
        if name not in stated and _is_foreign(name, value)
    ]
    total = len(stated - own)
    yield agreement(
        "variables",
        f"{total} as locked",
        f"{len(different)} {'differs' if len(different) == 1 else 'differ'}" if different else f"{total} as locked",
        agrees=not different,
    )
    yield from different


def _is_foreign(name: str, value: str) -> bool:
    """Return whether a variable that no lock states may change what runs, and is not a base image's."""
    if name == "LD_LIBRARY_PATH":
        return any(folder and not _OF_BASE_FOLDERS.fullmatch(folder) for folder in value.split(":"))
    return bool(_WATCHED.fullmatch(name)) and not _OF_BASE_IMAGES.fullmatch(name)
