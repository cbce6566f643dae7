"""Image registries: parsing of image references, digests and environments of tags, and the tags of a repository.

Sources: distribution/reference grammar, and Docker's rule that a first component is a registry only when it has a dot, a colon
or is `localhost`; OCI Distribution Specification 1.1, "Pulling manifests" and "Listing Tags"; OCI Image Specification 1.1,
"Image configuration"; Docker Registry token authentication specification.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotation at run time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from msgspec import Struct

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.http.transport import Response, Transport, refusal

if TYPE_CHECKING:
    from provisioner.index.settings import IndexSettings

DOCKER_HUB = "docker.io"
_HUB_NAMES = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
_LOOPBACK = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?")
_REGISTRY = re.compile(r"([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?")
_REPOSITORY = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_NEXT = re.compile(r"<[^>]*/tags/list\?([^>]*)>\s*;\s*rel=\"?next")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')

INDEX_TYPES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFEST_TYPES = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
LARGEST_ANSWER = 4 * 1024 * 1024
"""The largest answer in bytes that is parsed as JSON; the specification's limit for manifests, and more than a token needs."""


PAGE = 1000
"""The number of tags that a registry is asked for at once."""


class ImageReferenceError(ProvisionError):
    """A text is not an image reference, or the registry has no image of that reference."""

    code = "image-reference"
    exit_code = 2


class ImageReference(Struct, frozen=True, kw_only=True):
    """A parsed reference such as `ubuntu:24.04`, `nvcr.io/nvidia/pytorch:25.01-py3` or `localhost:5000/base@sha256:…`.

    `text` is the reference as the user wrote it; `digest` is "" when the reference has no digest.
    """

    text: str
    registry: str
    repository: str
    tag: str
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> ImageReference:
        """Parse a reference; raises `ImageReferenceError`, naming the invalid part, when the text is not one."""
        rest, at, digest = text.partition("@")
        if at and not _DIGEST.fullmatch(digest):
            # What stands before the @ may be a login.
            shown = text if digest.startswith("sha256:") else f"…@{digest}"
            raise ImageReferenceError(f"`{shown}` is not an image reference: `{digest}` is not a sha256 digest")
        first, slash, below = rest.partition("/")
        is_registry = bool(slash) and ("." in first or ":" in first or first == "localhost")
        registry, path = (first, below) if is_registry else (DOCKER_HUB, rest)
        repository, colon, tag = path.partition(":")
        if registry in _HUB_NAMES:
            registry, repository = DOCKER_HUB, repository if "/" in repository else f"library/{repository}"
        for part, pattern in ((registry, _REGISTRY), (repository, _REPOSITORY), (tag or "latest", _TAG)):
            if not pattern.fullmatch(part) or (colon and not tag):
                raise ImageReferenceError(
                    f"`{text}` is not an image reference: `{part}` cannot stand in one", hints=("write it as name:tag",)
                )
        return cls(text=text, registry=registry, repository=repository, tag=tag or "latest", digest=digest)

    @property
    def name(self) -> str:
        """The repository as people write it: `ubuntu`, `nvidia/cuda`, `localhost:5000/base`."""
        is_hub = self.registry == DOCKER_HUB
        return self.repository.removeprefix("library/") if is_hub else f"{self.registry}/{self.repository}"

    @property
    def base_url(self) -> str:
        """The URL of the repository's API; loopback registries are requested over plain HTTP, as container engines do."""
        host = "registry-1.docker.io" if self.registry == DOCKER_HUB else self.registry
        scheme = "http" if _LOOPBACK.fullmatch(host) else "https"
        return f"{scheme}://{host}/v2/{self.repository}"


def resolve_digest(reference: str, *, settings: IndexSettings) -> str:
    """Return the digest (`sha256:…`) of the image that a reference names at present.

    A digest in the reference itself is returned without a request. Raises `ImageReferenceError` when the text is not a
    reference or the registry has no such image, and `UnavailableError` when the registry cannot be reached or in offline mode.
    """
    parsed = ImageReference.parse(reference)
    if parsed.digest:
        return parsed.digest
    if settings.offline:
        raise UnavailableError(
            f"offline: the registry of `{reference}` cannot be asked",
            hints=("write the image with its digest, or run without --offline",),
        )
    transport = Transport(settings)
    try:
        return Repository(parsed, transport).digest(parsed.tag)
    finally:
        transport.close()


class ImageContent(Struct, frozen=True, kw_only=True):
    """The digest of an image, and the environment variables in its configuration for each platform (`linux/amd64`)."""

    digest: str
    environments: Mapping[str, Mapping[str, str]]


class Repository:
    """Client of a repository in its registry, for images that need no account; `reference` names any of its images."""

    def __init__(self, reference: ImageReference, transport: Transport) -> None:
        self._reference = reference
        self._transport = transport
        self._source = f"registry `{reference.registry}`"
        self._token = ""

    def digest(self, tag: str) -> str:
        """Return the digest of a tag: that of the response header, otherwise computed from the manifest itself."""
        stated = self._get(f"manifests/{tag}", method="HEAD").headers.get("Docker-Content-Digest", "")
        if _DIGEST.fullmatch(stated):
            return stated
        return _digest_of(self._get(f"manifests/{tag}").body)

    def tags(self) -> tuple[str, ...]:
        """Return all tags of the repository, sorted; raises `ImageReferenceError` when the registry does not know it."""
        found: set[str] = set()
        path = f"tags/list?n={PAGE}"
        while path:
            answer = self._get(path)
            listed = self._json(answer, path).get("tags") or []
            fresh = {str(tag) for tag in listed} - found if isinstance(listed, list) else set()
            found |= fresh
            following = _NEXT.search(answer.headers.get("Link", ""))
            # A registry that names a next page without new tags would be asked for ever.
            path = f"tags/list?{following[1]}" if following and fresh else ""
        return tuple(sorted(found))

    def content(self, tag: str) -> ImageContent:
        """Return the digest and the environments of a tag; raises `ImageReferenceError` when the registry lacks the tag."""
        answer = self._get(f"manifests/{tag}")
        manifest = self._json(answer, f"manifests/{tag}")
        listed = manifest.get("manifests")
        entries = map(_table, listed) if isinstance(listed, list) else ()
        # An index lists attestations, too, whose platform is unknown.
        digests = [str(entry.get("digest")) for entry in entries if _table(entry.get("platform")).get("os") == "linux"]
        if not all(map(_DIGEST.fullmatch, digests)):
            raise UnavailableError(f"{self._source} has an index of `{self._reference.repository}` without digests")
        of_platforms = [self._json(self._get(f"manifests/{digest}"), digest) for digest in digests]
        found = dict(self._environment(one) for one in (of_platforms or [manifest]))
        return ImageContent(digest=_digest_of(answer.body), environments=found)

    def _environment(self, manifest: dict[str, Any]) -> tuple[str, dict[str, str]]:
        """Return the platform and the environment of the image of a manifest."""
        digest = str(_table(manifest.get("config")).get("digest", ""))
        if not _DIGEST.fullmatch(digest):
            raise UnavailableError(f"{self._source} has a manifest of `{self._reference.repository}` without a configuration")
        answer = self._get(f"blobs/{digest}")
        if _digest_of(answer.body) != digest:
            raise UnavailableError(f"{self._source} sent another content than `{digest}` of `{self._reference.repository}`")
        config = self._json(answer, digest)
        variables = _table(config.get("config")).get("Env")
        pairs = (str(one).partition("=") for one in (variables if isinstance(variables, list) else ()))
        return f"{config.get('os')}/{config.get('architecture')}", {name: value for name, _, value in pairs}

    def _json(self, answer: Response, what: str) -> dict[str, Any]:
        try:
            found = json.loads(answer.body) if len(answer.body) <= LARGEST_ANSWER else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise UnavailableError(f"{self._source} answers with something that is no JSON object: {what}")
        return found

    def _get(self, path: str, *, method: str = "GET") -> Response:
        answer = self._request(path, method)
        challenge = answer.headers.get("WWW-Authenticate", "")
        if answer.status == 401 and challenge.lower().startswith("bearer ") and not self._token:
            self._token = self._new_token(dict(_CHALLENGE.findall(challenge)))
            answer = self._request(path, method)
        if answer.status == 404:
            name = self._reference.name
            raise ImageReferenceError(
                f"image `{name}:{path.removeprefix('manifests/')}` does not exist: {self._source} does not know it"
                if path.startswith("manifests/")
                else f"{self._source} has no `{path}` of `{name}`",
                hints=("check the name and the tag",),
            )
        if answer.status != 200:
            url = f"{self._reference.base_url}/{path}"
            raise refusal(answer.status, url, source=f"{self._source}, asked for `{self._reference.text}`,")
        return answer

    def _request(self, path: str, method: str) -> Response:
        headers = {"Accept": ", ".join((*INDEX_TYPES, *MANIFEST_TYPES))}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return self._transport.request(
            f"{self._reference.base_url}/{path}", source=self._source, method=method, headers=headers
        )

    def _new_token(self, challenge: dict[str, str]) -> str:
        """Request an anonymous bearer token from the service that `challenge` (a parsed WWW-Authenticate header) names.

        Public images need no account. Raises `UnavailableError` when the service refuses or answers with no token.
        """
        realm = challenge.get("realm", "")
        scope = challenge.get("scope") or f"repository:{self._reference.repository}:pull"
        query = {"scope": scope, **({"service": challenge["service"]} if "service" in challenge else {})}
        answer = self._transport.request(f"{realm}?{urlencode(query)}", source=f"the token service of {self._source}")
        if answer.status != 200:
            raise refusal(answer.status, realm, source=f"the token service of {self._source}")
        try:
            found = json.loads(answer.body) if len(answer.body) <= LARGEST_ANSWER else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise UnavailableError(f"the token service of {self._source} answers with something that is no token")
        return str(found.get("token") or found.get("access_token") or "")


def _table(value: object) -> dict[str, Any]:
    """Return a JSON object as it is, and any other value as an empty one: a registry may send anything."""
    return value if isinstance(value, dict) else {}


def _digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
