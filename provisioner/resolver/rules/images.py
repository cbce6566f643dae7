"""Base images as candidates: those of the matrix, or one that the spec names and the matrix does not list.

A spec that requires CUDA or its libraries without a framework gets an image that contains them, unless it names a base image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.grounds.doubt import TakenForKnown, UnknownImage
from provisioner.matrix.model import Build, ImageFacts, Release
from provisioner.matrix.need import Need
from provisioner.resolver.requirement import Candidate, ImageCandidate, Key
from provisioner.resolver.rules.bundled import BUNDLED
from provisioner.resolver.rules.facts import is_jetson
from provisioner.versions import Range, Version, series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provisioner.grounds.doubt import Doubt
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request

_LIBRARIES = frozenset(name for names in BUNDLED.values() for name in names)

WITH_LIBRARIES = ("cuda-runtime", "cuda-devel")
"""The kinds of NVIDIA's images with every library of CUDA's toolkit, the smaller first; the others have its compilers, too."""

KINDS = {"auto": "slim", "slim": "slim", "cuda-runtime": "cuda-runtime", "cuda-devel": "cuda-devel"}
"""The kind of base image that each keyword of `image.base` selects; any other text there is an image reference."""


def image_candidates(matrix: Matrix, request: Request, key: Key) -> tuple[tuple[Candidate, ...], tuple[Doubt, ...]]:
    """Return the base images that may be chosen, in order of preference, and the doubts about them.

    An image that the spec names and the matrix does not list is the only candidate, with a doubt if its C library or its Python
    is unknown. There are no candidates when the matrix has no image of the requested kind for the platform.
    """
    base = request.image_base
    kind = KINDS.get(base)
    if kind is not None:
        known = [image for image in matrix.images if image.kind == kind and _serves(image, request.platform)]
        if request.may_take_cuda_compat:
            known += _with_cuda_compat(matrix, request)
        if base == "auto" and any(is_jetson(matrix, target.host) for target in request.hosts):
            known += [image for image in matrix.images if image.kind == "l4t" and _serves(image, request.platform)]
    else:
        known = [image for image in images_named(matrix, base) if _serves(image, request.platform)]
    known.sort(key=lambda image: image.reference != request.preferred.get("image"))
    if known:
        # A reference of the spec keeps its digest, with the facts of its tag. The spec's NVIDIA_REQUIRE_CUDA comes before that
        # of the tag, for it was read from that very image.
        require = request.spec.image.require
        doubts: tuple[Doubt, ...] = ()
        if kind is None:
            doubts = tuple(
                TakenForKnown(reference=base.partition("@")[0], known=one.reference)
                for one in known[:1]
                if not is_published_as(base, one)
            )
            known = [
                _as_stated(
                    replace(one, reference=base, require_cuda=one.require_cuda if require is None else require), matrix, request
                )
                for one in known
            ]
        pythons = _managed(matrix, request.platform)
        exact = tuple(_with_toolkit(matrix, request, key, pythons)) if realises_toolkit(request) else ()
        labels = {one.label for one in exact}
        return (*exact, *(_candidate(image, key, pythons) for image in known if image.reference not in labels)), doubts
    if kind is not None:
        return (), ()
    given = request.spec.image
    foreign = ImageFacts(reference=base, kind="", glibc="", cuda=given.cuda or "", require_cuda=given.require or "")
    foreign = _as_stated(foreign, matrix, request)
    unknown = tuple(
        name for name, text in (("glibc", foreign.glibc), ("python", foreign.python or foreign.apt_python)) if not text
    )
    pythons = _managed(matrix, request.platform)
    return (_candidate(foreign, key, pythons),), (UnknownImage(reference=base, unknown=unknown),) if unknown else ()


def _as_stated(image: ImageFacts, matrix: Matrix, request: Request) -> ImageFacts:
    """Return a base image with the Linux distribution, C library and Python that the spec states of it.

    A distribution implies the C library and the Python of the images of that distribution in the matrix.
    """
    given = request.spec.image
    if given.distribution:
        like = next((one for one in matrix.images if one.distribution == given.distribution), None)
        image = replace(image, distribution=given.distribution, glibc=like.glibc if like is not None else image.glibc)
        if like is not None and not image.python:
            alike = (one.apt_python for one in matrix.images if one.distribution == given.distribution)
            image = replace(image, apt_python=next(filter(None, alike), ""))
    if given.python:
        stated = series(given.python)
        # Where the distribution packages it, nobody said which of the two it is, and only one has its headers.
        image = replace(image, python=stated, apt_python=stated if image.apt_python == stated else "")
    return replace(image, glibc=given.glibc) if given.glibc else image


def images_named(matrix: Matrix, reference: str) -> tuple[ImageFacts, ...]:
    """Return the base images of the matrix that a reference names: by digest, by name and tag, or in another registry.

    A company's mirror has the images of others below a path of its own, so an image whose path ends in the name and tag of a
    known one is taken for it; `is_published_as` tells the two apart.
    """
    same = tuple(one for one in matrix.images if is_published_as(reference, one))
    if same:
        return same
    path = f"/{reference.partition('@')[0]}"
    return tuple(one for one in matrix.images if path.endswith(f"/{one.reference.removeprefix('nvcr.io/')}"))


def is_published_as(reference: str, image: ImageFacts) -> bool:
    """Return whether a reference has the digest of a known image, or names it where its publisher has it."""
    tag, _, digest = reference.partition("@")
    return bool(image.digest and digest == image.digest) or _short(tag) == image.reference


def realises_toolkit(request: Request) -> bool:
    """Return whether the base image must contain the CUDA, or the CUDA libraries, that the spec requires without a framework.

    False if the spec names a base image, or a package that is not a library of NVIDIA's: such a package may require a
    framework, which brings its own CUDA.
    """
    is_open = bool(request.toolkit) and request.runs == "container" and request.image_base == "auto"
    return is_open and all(name.startswith("nvidia-") or name in _LIBRARIES for name in request.named_packages)


def _with_toolkit(matrix: Matrix, request: Request, key: Key, pythons: Sequence[Version]) -> Iterator[Candidate]:
    """Yield the images with the CUDA and cuDNN that the spec requires without a framework, newest CUDA first.

    With `strategy: oldest` the oldest comes first. Nothing is yielded if a host is a Jetson: NVIDIA's images for Arm are for
    servers.
    """
    if any(is_jetson(matrix, target.host) for target in request.hosts):
        return
    kind = "cuda-devel" if "nvcc" in request.spec.requires else "cuda-runtime"
    found = [image for image in matrix.images if image.kind == kind and image.cuda and _serves(image, request.platform)]
    if "cudnn" in request.toolkit:
        found = [image for image in found if image.cudnn]
    is_newest = request.spec.policy.strategy != "oldest"
    found.sort(key=lambda image: Version.parse(image.cuda), reverse=is_newest)
    yield from (_candidate(image, key, pythons, is_exact=True) for image in found)


def _with_cuda_compat(matrix: Matrix, request: Request) -> list[ImageFacts]:
    return [image for image in matrix.images if image.kind == "cuda-runtime" and _serves(image, request.platform)]


def images_with_libraries(matrix: Matrix, request: Request, key: Key) -> tuple[Candidate, ...]:
    """Return the base images with CUDA's libraries that may be chosen where the spec or wheels need what nothing else has.

    Where the spec requires CUDA or cuDNN, they are those with exactly the chosen releases.
    () if the spec does not leave the base image of a CUDA container open, or if a host is a Jetson: NVIDIA's images for Arm are
    for servers.
    """
    is_open = request.runs == "container" and request.image_base == "auto" and request.accelerator == "cuda"
    if not is_open or any(is_jetson(matrix, target.host) for target in request.hosts):
        return ()
    pythons = _managed(matrix, request.platform)
    if request.toolkit:
        return tuple(_with_toolkit(matrix, request, key, pythons))
    found = [image for image in matrix.images if image.kind in WITH_LIBRARIES and _serves(image, request.platform)]
    found.sort(key=lambda image: (image.reference != request.preferred.get("image"), WITH_LIBRARIES.index(image.kind)))
    return tuple(_candidate(image, key, pythons) for image in found)


def images_with_cuda_compat(matrix: Matrix, request: Request, cuda: Version) -> frozenset[str]:
    """Return the references of the base images that may be chosen with a cuda-compat of the release `cuda` or a newer one."""
    images = _with_cuda_compat(matrix, request)
    return frozenset(one.reference for one in images if Version.parse(one.cuda).release[:2] >= cuda.release[:2])


def has_cuda_compat(request: Request, image: Candidate | None) -> bool:
    """Return whether the chosen base image has cuda-compat, as the spec states or as every CUDA image of NVIDIA has."""
    return request.has_cuda_compat or (isinstance(image, ImageCandidate) and image.image.kind.startswith("cuda-"))


def cuda_of_compat(request: Request, image: Candidate | None) -> Version | None:
    """Return the CUDA release of the cuda-compat in the chosen base image: what the spec states, or the CUDA of NVIDIA's image.

    None when the image has no cuda-compat, or its release is unknown.
    """
    if request.spec.image.cuda_compat or not isinstance(image, ImageCandidate) or not has_cuda_compat(request, image):
        return request.stated_cuda_compat
    return Version.parse(image.image.cuda) if image.image.cuda else None


def _serves(image: ImageFacts, platform: str) -> bool:
    return not image.platforms or platform in image.platforms


def _managed(matrix: Matrix, platform: str) -> tuple[Version, ...]:
    """Return the Python series that archives install in images of Linux distributions on a platform, newest first."""
    found = {Version.parse(series(str(one.version))) for one in matrix.python_builds if platform in one.platforms}
    return tuple(sorted(found, reverse=True))


def _short(tag: str) -> str:
    """Return a tag as the matrix spells it: without the registry that is the default one, or that has the same CUDA images.

    Source: NVIDIA container images, README.md: the CUDA images are on Docker Hub and in NVIDIA's catalogue.
    """
    short = tag.removeprefix("docker.io/").removeprefix("library/")
    return short.removeprefix("nvcr.io/") if short.startswith("nvcr.io/nvidia/cuda:") else short


def own_pythons(candidates: Iterable[Candidate]) -> frozenset[str]:
    """Return the Python versions that one of the base images contains or that its Linux distribution packages."""
    images = (one.image for one in candidates if isinstance(one, ImageCandidate))
    return frozenset(image.python or image.apt_python for image in images) - {""}


def _candidate(image: ImageFacts, key: Key, pythons: Sequence[Version] = (), *, is_exact: bool = False) -> Candidate:
    """Return an image as a candidate.

    With `is_exact` the candidate requires exactly the CUDA and cuDNN in the image, and the compiler of that CUDA if the image
    has one, otherwise any CUDA of the same minor release. `pythons` are the Python series that can be installed in an image
    whose Linux distribution packages another series.
    """
    needs = [*image.requires]
    if image.glibc:
        needs.append(Need(component="glibc", range=Range(), one_of=(Version.parse(image.glibc),)))
    if is_exact:
        held = {"cuda": image.cuda, "cudnn": image.cudnn}
        needs.extend(Need(component=name, range=Range(), one_of=(Version.parse(text),)) for name, text in held.items() if text)
        if image.kind == "cuda-devel":
            needs.append(Need(component="nvcc", range=Range.parse(f"=={series(image.cuda)}.*")))
    elif image.cuda:
        # A CUDA image contains a toolkit: the framework's CUDA must be of the same minor release.
        level = series(image.cuda)
        needs.append(Need(component="cuda", range=Range.parse(f"=={level}.*")))
    python = image.python or image.apt_python
    if python:
        others = pythons if image.apt_python and not image.python else ()
        needs.append(Need(component="python", range=Range(), one_of=tuple(dict.fromkeys((Version.parse(python), *others)))))
    release = Release(version=Version.named(image.reference), requires=tuple(needs), source=image.source)
    build = Build(name=image.reference, platforms=image.platforms)
    return ImageCandidate(key, Version.named(image.reference), image.reference, release, build, image=image)
