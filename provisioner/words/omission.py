"""Omissions as sentences: what was not carried over into a spec, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds import omission as of

if TYPE_CHECKING:
    from provisioner.grounds.omission import Omission, Reason


def omission_words(omission: Omission) -> str:
    """Return an omission as one line: file and line, the text, and why it was not carried over."""
    quoted = f" `{omission.text}`:" if omission.text else ""
    return f"{omission.place}:{quoted} {reason_words(omission.reason)}"


def reason_words(reason: Reason) -> str:
    """Return why something was not carried over, as a clause."""
    match reason:
        case of.Refused(why=why):
            return why
        case of.NoPythonPackage():
            return "no Python package; what the program needs of it goes under `image: {apt: [...]}`"
        case of.BuildString():
            return "builds of conda are not those of an index; what this one says of CUDA and Python is carried over"
        case of.VersionNotation(name=name):
            return f"Python requirements have no such range; `{name}` is carried over without it"
        case of.Channel():
            return "a channel of conda is no package index; packages come from PyPI, or from what `indexes:` lists"
        case of.OfChannel(name=name, channel=channel):
            return (
                f"of the channel {channel}; `{name}` of a package index may be another project: write it under `packages:` "
                "if it is the same; a program of the system goes under `image: {apt: [...]}`"
            )
        case of.WithCompiler():
            return "CUDA is carried over, its compiler is not; `nvcc` under `requires:` asks for it"
        case of.Installer():
            return "of how packages are installed, which the outputs of the lock choose"
        case of.Application():
            return "of the application or the container, not of its environment"
        case of.UnreadCommand():
            return "what the command adds is not known; packages of the system go under `image: {apt: [...]}`"
        case of.UnknownKey():
            return "the key has no meaning that is known here"
        case of.UnsetVariable(name=name):
            return f"the file gives `{name}` no value"
        case of.PatchRelease(kept=kept):
            return f"Python is chosen by series, in its newest patch release; `{kept}` is carried over"
        case of.Contradicts(key=key, kept=kept, place=place):
            return f"`{key}: {kept}` of {place} is carried over, and both cannot hold"
        case of.Login():
            return "the address has a login, which is not copied; put it into ~/.netrc or the keyring"
        case of.OwnerUnknown():
            return "a page of files; list it under `indexes:` with `kind: find-links` and the packages that come from it"
        case of.PyTorchIndex(variant=variant):
            asks = f"; `pytorch_build: {variant}` under `requires:` asks for that build" if variant else ""
            return f"PyTorch's own index is asked anyway, for the build that the target needs{asks}"
        case of.MissingFile(path=path):
            return f"there is no file `{path}` here, or no line that copies it into the image"
        case of.OtherStage():
            return "the stage is no part of the last one"
        case of.Conditional(word=word):
            return f"it runs on a condition alone (`{word}`), and is carried over: take out what this target does not need"
        case of.CopiedStage():
            return (
                "only what is copied from the stage is in the image; its Python packages are carried over: take out those that "
                "only build"
            )
        case of.ImageReplaced():
            return "a base image is chosen for what this one is known to hold; what else is in it is not carried over"
        case of.ImageUnknown():
            return (
                "the image is carried over; nobody here knows what is in it: state `distribution` and `python` under `image:`"
            )
        case of.AptUnknown(image=image):
            return f"nobody here knows whether `{image}` has apt-get; `distribution:` under `image:` states it"
        case of.NoImage():
            return "not the name of an image"
        case of.Redirected(name=name):
            return f"without quotes the shell takes `>` for a redirection: `{name}` had no such bound, and has none here"
        case of.PlatformOfImage():
            return "the platform is that of the target"
        case of.VersionPattern(name=name):
            return f"not one version of a Debian package; `{name}` is carried over without it"
        case of.NoSystemPackage():
            return "not the name of a package of Debian or Ubuntu"
        case of.NotAsked(kind="extra", name=name):
            return f"an extra, which nobody asked for; `extras: [{name}]` in `packages-from:` takes it"
        case of.NotAsked(kind="optional"):
            return "optional, and nobody asked for it; write it under `packages:` to have it"
        case of.NotAsked(kind="poetry-group"):
            return "a group of Poetry's, which nobody asked for; write what is wanted of it under `packages:`"
        case of.NotAsked(kind="tool-group"):
            return "a group for development, which nobody asked for; write what is wanted of it under `packages:`"
        case of.NotAsked(name=name):
            return f"a dependency group, which nobody asked for; `groups: [{name}]` in `packages-from:` takes it"
        case of.Override():
            return "it replaces what metadata requires; write it under `overrides:`"
        case of.OtherSource(tool=tool):
            return f"a source of {tool}, which is not followed; write the index under `indexes:`, or `NAME @ URL`"
        case of.Hashes():
            return "the lines were copied, and a spec has no hashes; the lock will have its own"
