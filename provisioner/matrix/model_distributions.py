"""What a matrix knows of Python distributions beyond their metadata: builds, undeclared needs, limits, shared files."""

from __future__ import annotations

from msgspec import Struct

from provisioner.matrix.need import Need  # noqa: TC001 - msgspec reads the annotation at run time


class ImpliedNeed(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What some versions of a distribution need although their metadata does not say so.

    `versions` is a PEP 440 specifier, "" for every version. `served_by` is `default` or `variant-index` when the row is about
    the files of that index only, "" when it is about all of them. `needs` are of components, `packages` of other distributions
    (name, PEP 440 specifier). `brings` is the CUDA runtime it brings along for itself, whatever a framework's is: the driver
    and the GPUs must be good for that one too. `cxx11_abi` is the C++ ABI of its wheels on the default index where they call
    PyTorch with strings or lists, None where nothing is known or needed: a build of PyTorch of the other ABI does not have the
    functions they call. A file of a variant index has the ABI of the build it is compiled for.
    """

    versions: str
    needs: tuple[Need, ...] = ()
    because: str
    served_by: str = ""
    sources: tuple[str, ...] = ()
    packages: tuple[tuple[str, str], ...] = ()
    brings: tuple[Need, ...] = ()
    cxx11_abi: bool | None = None


class Distribution(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What is known of a Python distribution beyond its metadata.

    `compiled_against` is the component whose CUDA build its wheels are compiled for, for the releases in `versions` (a PEP
    440 specifier, "" for all). `served_by` is `variant-index` when the framework's indexes have wheels of it, else `default`.
    `gpu_twin` is the distribution with the same modules that uses a GPU, which this one never does.
    """

    name: str
    compiled_against: str = ""
    versions: str = ""
    served_by: str = "default"
    implied: tuple[ImpliedNeed, ...] = ()
    sources: tuple[str, ...] = ()
    gpu_twin: str = ""


class DistributionLimit(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """When `when` is in range (and every guard holds), a distribution is in `specifier` (PEP 440) if it is there at all."""

    name: str
    when: Need
    guards: tuple[Need, ...] = ()
    distribution: str
    specifier: str
    because: str
    sources: tuple[str, ...] = ()


class FileOwner(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """A distribution whose wheels have a file that another one's have too, in `versions` (PEP 440, "" for all).

    `artefact` is the wheel it was read from and `sha256` its hash; `content` is the file's own hash as the wheel's RECORD
    states it.
    """

    distribution: str
    versions: str = ""
    artefact: str = ""
    sha256: str = ""
    content: str = ""


class SharedFile(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """A path that wheels of several distributions write, with different content: whoever is installed last is in effect.

    `is_refused`: no two of the owners may be in one environment. Otherwise such an answer is named, and a policy may forbid it.
    """

    name: str
    path: str
    owners: tuple[FileOwner, ...]
    because: str
    is_refused: bool = True
    sources: tuple[str, ...] = ()
