"""Omissions: what a file has and a spec that was made from it has not, each with the reason."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from provisioner.places import Place  # noqa: TC001 - msgspec evaluates the annotations


class Refused(Struct, frozen=True):
    """The reason that a spec refuses the line; `why` is the message of the part that reads such lines in a spec."""

    why: str


class NoPythonPackage(Struct, frozen=True):
    """The reason that a conda package has no Python package on an index."""


class BuildString(Struct, frozen=True):
    """The reason that a build of conda's has no counterpart; what it says of CUDA and Python was carried over."""


class VersionNotation(Struct, frozen=True):
    """The reason that a range of conda's cannot be written as a Python requirement; `name` was carried over without it."""

    name: str


class Channel(Struct, frozen=True):
    """The reason that a channel of conda's is no package index."""


class OfChannel(Struct, frozen=True):
    """The reason that a package is of a channel of conda's with packages of its own; an index may have another of its name."""

    name: str
    channel: str


class WithCompiler(Struct, frozen=True):
    """The reason that a package is CUDA and its compiler, of which only CUDA was carried over."""


class Installer(Struct, frozen=True):
    """The reason that something installs packages, or is an option of what installs them."""


class Application(Struct, frozen=True):
    """The reason that something belongs to the application or the container, not to the environment."""


class UnreadCommand(Struct, frozen=True):
    """The reason that nobody here knows what a command adds to the image."""


class UnknownKey(Struct, frozen=True):
    """The reason that a key has no meaning that is known here."""


class UnsetVariable(Struct, frozen=True):
    """The reason that a text has a variable of which the file does not state the value."""

    name: str


class PatchRelease(Struct, frozen=True):
    """The reason that Python is chosen by series, so that a patch release became its series `kept`."""

    kept: str


class Contradicts(Struct, frozen=True):
    """The reason that another line says something else of the same `key` of the spec: `kept`, which was carried over."""

    key: str
    kept: str
    place: Place


class Login(Struct, frozen=True):
    """The reason that an address has a login, which must not be in a spec."""


class OwnerUnknown(Struct, frozen=True):
    """The reason that a page of files does not say which packages come from it."""


class PyTorchIndex(Struct, frozen=True):
    """The reason that PyTorch's own index is asked anyway; `variant` (`cu121`) is the build that it has, "" for several."""

    variant: str


class MissingFile(Struct, frozen=True):
    """The reason that a file that is named does not exist beside the file that names it, or no line copies it there."""

    path: str


class OtherStage(Struct, frozen=True):
    """The reason that a stage of a Dockerfile is no part of the last one."""


class Conditional(Struct, frozen=True):
    """The reason that a command runs on a condition alone (`if`, `case`, `||`); what it installs was carried over."""

    word: str


class CopiedStage(Struct, frozen=True):
    """The reason that only some files of a stage are copied into the last one; its Python packages were carried over."""


class ImageReplaced(Struct, frozen=True):
    """The reason that a base image became what it is known to hold; what else is in it is not carried over."""


class ImageUnknown(Struct, frozen=True):
    """The reason that a base image was carried over although its contents are unknown."""


class AptUnknown(Struct, frozen=True):
    """The reason that nobody here knows whether the base image has apt-get."""

    image: str


class NoImage(Struct, frozen=True):
    """The reason that a text behind FROM is not the name of an image."""


class Redirected(Struct, frozen=True):
    """The reason that the shell takes an unquoted `>` for a redirection, so that the bound behind it was without effect."""

    name: str


class PlatformOfImage(Struct, frozen=True):
    """The reason that a platform of a base image does not choose the target, which a host does."""


class VersionPattern(Struct, frozen=True):
    """The reason that a version of a system package is a pattern, or no version of Debian's; `name` was carried over."""

    name: str


class NoSystemPackage(Struct, frozen=True):
    """The reason that an argument is not the name of a package of Debian or Ubuntu."""


class NotAsked(Struct, frozen=True):
    """The reason that a project has more requirements, of an extra or a dependency group, that nobody asked for.

    `optional` is a dependency that Poetry installs with an extra alone, `poetry-group` a group of Poetry's, and `tool-group`
    one for development that only uv or PDM reads.
    """

    kind: Literal["extra", "group", "optional", "poetry-group", "tool-group"]
    name: str


class Override(Struct, frozen=True):
    """The reason that a table of another tool replaces what metadata requires, which is not read there."""


class OtherSource(Struct, frozen=True):
    """The reason that a table of another tool names a source for a package, which is not followed."""

    tool: str


class Hashes(Struct, frozen=True):
    """The reason that hashes of files are left out: the requirements were copied, and a spec has no hashes."""


Reason = (
    Refused
    | NoPythonPackage
    | BuildString
    | VersionNotation
    | Channel
    | OfChannel
    | WithCompiler
    | Installer
    | Application
    | UnreadCommand
    | UnknownKey
    | UnsetVariable
    | PatchRelease
    | Contradicts
    | Login
    | OwnerUnknown
    | PyTorchIndex
    | MissingFile
    | OtherStage
    | Conditional
    | CopiedStage
    | ImageReplaced
    | ImageUnknown
    | AptUnknown
    | NoImage
    | Redirected
    | PlatformOfImage
    | VersionPattern
    | NoSystemPackage
    | NotAsked
    | Override
    | OtherSource
    | Hashes
)


class Omission(Struct, frozen=True):
    """One thing that was not carried over: its text, without logins, where it stands, and why."""

    text: str
    place: Place
    reason: Reason
