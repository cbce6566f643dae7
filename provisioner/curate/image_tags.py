"""Base images and their registries: rows for new tags, and comparison of rows with the images that their tags name.

The rows of the file are edited by hand. New rows and gates are added to its text, which otherwise remains as it is.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.curate.audit_verdict import Row, confirmed, refuted, unmeasured
from provisioner.curate.rows import flow_row
from provisioner.errors import RefusedError, UnavailableError
from provisioner.index.image_registry import ImageReference, ImageReferenceError, Repository
from provisioner.matrix.model import Build, Component, ImageFacts, Release
from provisioner.platforms import LINUX_PLATFORMS
from provisioner.versions import Version, dotted, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.curate.audit_verdict import Finding
    from provisioner.curate.index_reader import IndexReader
    from provisioner.index.http.transport import Transport
    from provisioner.index.image_registry import ImageContent
    from provisioner.matrix.files import ImageFile
    from provisioner.matrix.model import ImageSurvey, Matrix
    from provisioner.platforms import PlatformName

IMAGES = "images"
"""The name that selects the base images in a refresh or an audit, used like the name of a component."""

SOURCE = "image-registry"
CITATION = """\
  image-registry:
    title: "manifests and configurations of the tags in the registry of container images"
    where: "platforms of the index; CUDA_VERSION, NV_CUDNN_VERSION, NVIDIA_REQUIRE_CUDA and PYTHON_VERSION in the environment"
    url: "https://hub.docker.com/"
    read: "{day}"
    measured: true
"""
GATE = "NVIDIA_REQUIRE_CUDA"
WIDTH = 100


class AddedImages(Struct, frozen=True, kw_only=True):
    """The text of the file with the rows of new tags (`rows` is their number).

    `notes` are messages about new tags for which there can be no row, `unread` about repositories that could not be read.
    """

    text: str
    rows: int = 0
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class UnknownPlaceError(RefusedError):
    """Raised when the file of images has no list of images, or no gates, to which anything could be added."""

    code = "unknown-place"


def add_images(before: str, old: ImageFile, index: IndexReader, *, today: str, keep_going: bool) -> AddedImages:
    """Return the text `before` of the file `old` with a row for each new tag in the repositories of its `surveys`.

    With `keep_going`, a repository that cannot be read adds nothing; otherwise `UnavailableError` is raised.
    """
    gates = {" ".join(text.split()): name for name, text in old.gates.items()}
    known = set(gates.values())
    found: list[ImageFacts] = []
    notes: list[str] = []
    unread: list[str] = []
    for survey in old.surveys:
        index.report(f"{survey.repository}: its list of tags")
        try:
            transport = index.online(f"the tags of `{survey.repository}`")
            found += _new_images(survey, old, transport, gates=gates, notes=notes)
        except (UnavailableError, ImageReferenceError) as error:
            if not keep_going:
                raise
            unread.append("; ".join((f"{IMAGES}: {survey.repository}: {error.message}", *error.causes)))
    fresh = {name: text for text, name in gates.items() if name not in known}
    text = _with_rows(before, found, fresh, today=today) if found else before
    return AddedImages(text=text, rows=len(found), notes=tuple(notes), unread=tuple(unread))


def _new_images(
    survey: ImageSurvey, old: ImageFile, transport: Transport, *, gates: dict[str, str], notes: list[str]
) -> Iterator[ImageFacts]:
    pattern = re.compile(survey.tags)
    prefix = f"{survey.repository}:"
    rows = [
        (match, image)
        for image in old.images
        if image.reference.startswith(prefix) and (match := pattern.fullmatch(image.reference.removeprefix(prefix)))
    ]
    references = {image.reference for image in old.images}
    newest = max((numbers_of(match["version"]) for match, _ in rows), default=())
    repository = Repository(ImageReference.parse(survey.repository), transport)
    tags = [match for tag in repository.tags() if (match := pattern.fullmatch(tag))]
    for match in sorted(tags, key=lambda one: (numbers_of(one["version"]), one.string), reverse=True):
        reference = prefix + match.string
        if reference in references or numbers_of(match["version"]) < newest:
            continue
        like = [image for other, image in rows if _group(other, "flavour") == _group(match, "flavour")]
        system = next((image for other, image in rows if other["system"] == match["system"]), None)
        if system is None or not like:
            notes.append(f"`{reference}` is new, but no row tells what is in `{match['system']}`: add one by hand")
            continue
        template = replace(
            like[0],
            reference=reference,
            distribution=system.distribution,
            glibc=system.glibc,
            apt_python=system.apt_python,
            end_of_life="",
            source=(SOURCE, *_common_sources(old, system.distribution)),
        )
        yield from _rows(template, repository.content(match.string), gates)


def _group(match: re.Match[str], name: str) -> str:
    return match.groupdict().get(name) or ""


def _common_sources(old: ImageFile, distribution: str) -> tuple[str, ...]:
    """Return the sources that every row of a distribution cites, which are those about the distribution itself."""
    own = [image.source for image in old.images if image.distribution == distribution and SOURCE not in image.source]
    return tuple(key for key in own[0] if all(key in source for source in own)) if own else ()


def _rows(template: ImageFacts, content: ImageContent, gates: dict[str, str]) -> Iterator[ImageFacts]:
    """Yield the rows of one tag: one for the platforms that agree in everything; names a gate that is new in `gates`."""
    found: dict[tuple[tuple[str, str], ...], list[PlatformName]] = {}
    for platform in LINUX_PLATFORMS:
        environment = content.environments.get(platform)
        if environment is None:
            continue
        facts = facts_of(environment)
        gate = facts.pop("require_cuda")
        if gate and gate not in gates:
            plain = f"cuda-{facts['cuda']}"
            gates[gate] = plain if plain not in gates.values() else f"{plain}-{platform.rpartition('/')[2]}"
        facts["require_cuda"] = gates.get(gate, "")
        found.setdefault(tuple(facts.items()), []).append(platform)
    for told, platforms in found.items():
        yield replace(template, platforms=tuple(platforms), digest=content.digest, **dict(told))


def facts_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of an image's row that its environment tells, "" for those that it does not."""
    cudnn = environment.get("NV_CUDNN_VERSION") or environment.get("NV_CUDNN_PACKAGE_VERSION", "")
    return {
        "cuda": environment.get("CUDA_VERSION", ""),
        "cudnn": cudnn.partition("-")[0],
        "python": dotted(numbers_of(environment.get("PYTHON_VERSION", ""))[:2]) if "PYTHON_VERSION" in environment else "",
        "require_cuda": " ".join(environment.get(GATE, "").split()),
    }


def _with_rows(before: str, rows: Sequence[ImageFacts], gates: Mapping[str, str], *, today: str) -> str:
    lines = before.splitlines(keepends=True)
    places = [lines.index(f"{key}\n") for key in ("surveys:", "gates:", "images:") if f"{key}\n" in lines]
    if len(places) != 3 or places != sorted(places):
        raise UnknownPlaceError(
            "the file of images cannot be added to", hints=("it needs the keys surveys, gates and images, in this order",)
        )
    surveys, _, images = places
    head = "".join(lines[:surveys])
    citation = CITATION.format(day=today)
    known = re.search(rf"(?m)^  {SOURCE}:\n(?:    .*\n)*", head)
    head = head.replace(known[0], citation) if known else head + citation
    texts = [f"  {name}: >-\n{textwrap.indent(_folded(text), '    ')}\n" for name, text in gates.items()]
    added = [f"  - {flow_row(row)}\n" for row in rows]
    return "".join((head, *lines[surveys:images], *texts, *lines[images:], *added))


def _folded(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False))


def image_rows(matrix: Matrix, reference: str = "") -> Iterator[Row]:
    """Yield an audit row for each base image of the matrix; with a `reference`, only for the rows of this image."""
    component = Component(name=IMAGES, title="base images")
    for image in matrix.images:
        if reference in {"", image.reference}:
            yield Row(
                component=component,
                release=Release(version=Version.named(image.reference)),
                build=Build(name=image.kind, platforms=image.platforms, artefact=image.reference),
                place=str(matrix.positions.get(f"image:{image.reference}", "")),
            )


def image_findings(matrix: Matrix, row: Row, transport: Transport) -> Iterator[Finding]:
    """Yield findings on the row of a base image against the image that its tag names now; raises `UnavailableError`."""
    reference = row.build.artefact
    image = next(one for one in matrix.images if (one.reference, one.platforms) == (reference, row.build.platforms))
    parsed = ImageReference.parse(reference)
    try:
        content = Repository(parsed, transport).content(parsed.tag)
    except ImageReferenceError as error:
        yield refuted("reference", reference, error.message)
        return
    if image.digest:
        moved = f"the tag names {content.digest} now; the rest is compared with that"
        same = content.digest == image.digest
        yield confirmed("digest", image.digest, "the tag names it") if same else unmeasured("digest", image.digest, moved)
    for platform in image.platforms:
        environment = content.environments.get(platform)
        if environment is None:
            yield refuted("platforms", platform, f"the image is for {', '.join(sorted(content.environments))}")
            continue
        yield confirmed("platforms", platform, "the image is for it")
        for field, read in facts_of(environment).items():
            stated = " ".join(getattr(image, field).split())
            name = "gate" if field == "require_cuda" else field
            if not stated and read:
                yield unmeasured(name, "not stated", f"{platform}: {read}")
            elif stated and not read and field != "require_cuda":
                yield unmeasured(name, stated, f"{platform}: its environment does not tell")
            elif stated:
                is_same = stated == read if field == "require_cuda" else _is_of(read, stated)
                yield (confirmed if is_same else refuted)(name, stated, f"{platform}: {read or 'none'}")


def _is_of(read: str, stated: str) -> bool:
    """Return whether a version is the stated one, or of the stated series: 13.0.2.006 is a build of 13.0.2."""
    return f"{read}.".startswith(f"{stated}.")
