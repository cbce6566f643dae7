"""Build or find the image of a lock, and compare what is known without running it: recipe, local files, configuration."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.document import FileError, file_sha256, write_text
from provisioner.evidence.report import FieldReport, agreement, unverified
from provisioner.outputs import OUTPUTS
from provisioner.render import render
from provisioner.render.container import tag
from provisioner.render.header import rendered_from
from provisioner.render.helper import helper_files
from provisioner.render.image_config import image_config
from provisioner.render.stages import WHEELHOUSE
from provisioner.validate.compare_files import compare_config, compare_origin
from provisioner.validate.engine import BuildRequest, Built

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock, LockedFile
    from provisioner.validate.engine import Built, Engine, Log

_IGNORE = ".dockerignore"
_CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")


class Recipe(Struct, frozen=True, kw_only=True):
    """The recipe to build, in one of the formats `RECIPES`: that beside the lock, else one rendered now, whose `path` is None.

    `is_edited` if it is not, byte for byte, what this version renders from the lock.
    """

    format: str
    text: str
    path: Path | None = None
    is_edited: bool = False


class Source(Struct, frozen=True, kw_only=True):
    """A lock, its path, and the recipe of its image."""

    lock: Lock
    path: Path
    recipe: Recipe


RECIPES = {"dockerfile": ("Dockerfile", "*ockerfile*"), "apptainer": ("definition file", "*.def")}
"""The output formats that engines build images from: what such a file is called, and the names that it may have."""


def source_of(lock: Lock, path: Path, *, recipe: str) -> Source:
    """Return a lock with its recipe of a format; raises `UnrenderableError`, and `FileError` for one that cannot be read."""
    rendered = render(lock, recipe, lock_file_name=path.name)
    files = sorted(path.parent.glob(RECIPES[recipe][1]))
    beside = next((file for file in files if rendered_from(file) == path.name), None)
    if beside is None:
        return Source(lock=lock, path=path, recipe=Recipe(format=recipe, text=rendered))
    try:
        text = beside.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"`{beside}` cannot be read: {error}") from None
    return Source(lock=lock, path=path, recipe=Recipe(format=recipe, text=text, path=beside, is_edited=text != rendered))


def compare_static(source: Source, *, is_run: bool) -> Iterator[FieldReport]:
    """Yield the fields of what is known without an engine; `is_run` if the image is compared with the lock afterwards."""
    recipe = source.recipe
    if recipe.path is None:
        note = f"there is no {RECIPES[recipe.format][0]} of this lock beside it"
        yield agreement("recipe", "as rendered", "rendered now", agrees=True, note=note)
    elif not recipe.is_edited:
        yield agreement("recipe", "as rendered", "as rendered", agrees=True, note=recipe.path.name)
    else:
        note = f"{recipe.path.name} is not what this version renders from the lock; it is built as it is"
        edited = agreement("recipe", "as rendered", "edited", agrees=True, note=note)
        yield edited if is_run else unverified("recipe", "as rendered", note)
    local = {file.path: file for file in source.lock.files if file.path}
    if local:
        wrong = [path for path, file in sorted(local.items()) if not _is_intact(source.path.parent / path, file)]
        measured = f"{len(local) - len(wrong)} as locked"
        yield agreement("local files", f"{len(local)} by hash", measured, agrees=not wrong, note=", ".join(wrong))
    ignored = _ignore_file(source)
    if ignored is not None and not recipe.is_edited:
        needed = {source.path.name, *local, *helper_files(recipe.format, recipe.text)}
        hidden = sorted(_hidden(ignored, source.path.parent, needed))
        yield agreement(ignored.name, "hides nothing", f"{len(hidden)} hidden", agrees=not hidden, note=", ".join(hidden))


def _hidden(ignored: Path, folder: Path, names: set[str]) -> set[str]:
    """Return which files of a build, by their paths in its folder, an ignore file hides."""
    from docker.utils.build import PatternMatcher  # only where there is such a file

    lines = (line.strip() for line in ignored.read_text(encoding="utf-8", errors="surrogateescape").splitlines())
    matcher = PatternMatcher([line for line in lines if line and not line.startswith("#")])
    present = (name for name in names if (folder / name).exists())
    return {name for name in present if matcher.matches(name)}  # type: ignore[arg-type]  # its stubs want a path; it reads text


def _is_intact(path: Path, file: LockedFile) -> bool:
    try:
        return file_sha256(path) == file.sha256
    except FileError:
        return False


def compare_image(lock: Lock, built: Built, engine: Engine, *, lock_file_name: str, platform: str) -> Iterator[FieldReport]:
    """Yield the fields of the configuration of an image; none if the engine has no images."""
    image = engine.inspect(built.image) if built.image else None
    if image is not None and not engine.has_entry_points:
        yield from compare_origin(lock, platform, image)
    elif image is not None:
        expected = image_config(lock, lock_file_name, platform)
        yield from compare_config(expected, platform, image, is_built_here=bool(built.tag))


def build(source: Source, engine: Engine, log: Log, *, platform: str, network: str, is_kept: bool) -> Built:
    """Build the recipe of a lock; raises `BuildFailedError` or `EngineError`.

    The context has only the files that a recipe mounts, less what a `.dockerignore` hides from `docker build .`. An edited
    recipe may use others: its context is the folder of the lock.
    """
    recipe, ignored = source.recipe, _ignore_file(source)
    with tempfile.TemporaryDirectory(prefix="provision-context-") as scratch:
        context = source.path.parent if recipe.is_edited else Path(scratch) / "context"
        if not recipe.is_edited:
            context.mkdir()
            copy_context(source.lock, source.path, context)
            for name, helper in helper_files(recipe.format, recipe.text).items():
                write_text(context / name, helper)
            if ignored is not None:
                shutil.copyfile(ignored, context / _IGNORE)
        dockerfile = Path(scratch) / OUTPUTS[recipe.format].file_name
        dockerfile.write_text(recipe.text, encoding="utf-8")
        request = BuildRequest(
            context=context,
            dockerfile=dockerfile,
            tag=_tag(source.lock, is_kept=is_kept),
            platform=platform,
            secrets=build_secrets(recipe.text),
            network=network,
        )
        return engine.build(request, log)


def _ignore_file(source: Source) -> Path | None:
    """Return the file that hides files from the build of a recipe beside a lock; None if there is none.

    That is its own (`Dockerfile.dockerignore`), else the folder's; see docs.docker.com/build/concepts/context.
    """
    recipe = source.recipe.path
    if recipe is None:
        return None
    found = (recipe.with_name(recipe.name + _IGNORE), source.path.with_name(_IGNORE))
    return next((path for path in found if path.is_file()), None)


def _tag(lock: Lock, *, is_kept: bool) -> str:
    """Return the tag of the image, in a namespace of this program, so that no image of the user is replaced or removed.

    An image that is removed after its checks has a tag that no other run uses: two runs may validate one lock at a time.
    """
    own = "" if is_kept else f"-{secrets.token_hex(4)}"
    return f"provision-validate/{lock.name.lower()}:{tag(lock)}{own}"


def copy_context(lock: Lock, lock_path: Path, context: Path) -> None:
    """Copy the lock and the local files beside it that it names into a build context; raises `FileError` if one is missing.

    Those of its published files that `provision fetch` left in the folder `WHEELHOUSE` beside it are copied, too.
    """
    for name in (lock_path.name, *sorted({file.path for file in lock.files if file.path})):
        target = context / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(lock_path.parent / name, target)
        except OSError as error:
            raise FileError(f"`{name}`, which lock `{lock.name}` names, cannot be read: {error.strerror}") from None
    pythons = (stack.image.managed_python for stack in lock.stacks if stack.image is not None)
    names = {*(file.filename for file in lock.files), *(one.filename for one in pythons if one is not None)}
    for one in sorted(path for name in names if (path := lock_path.parent / WHEELHOUSE / name).is_file()):
        (context / WHEELHOUSE).mkdir(exist_ok=True)
        shutil.copyfile(one, context / WHEELHOUSE / one.name)


def build_secrets(dockerfile: str) -> dict[str, Path]:
    """Return the files of this machine for the secrets that a Dockerfile mounts, by the id of the secret.

    `ca` is the certificate bundle that the environment variables name, `netrc` the logins for private indexes. A secret without
    a file is left out. Secrets are mounted in single steps of the build and never become part of the image.
    """
    candidates = {
        "ca": [os.environ.get(name, "") for name in _CERTIFICATES],
        "netrc": [os.environ.get("NETRC", ""), str(Path.home() / ".netrc")],
    }
    found = {name: [Path(path) for path in paths if path and Path(path).is_file()] for name, paths in candidates.items()}
    return {name: paths[0] for name, paths in found.items() if paths and f"id={name}" in dockerfile}
