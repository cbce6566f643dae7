"""Image registries: parsing of image references, and resolution of a tag to its digest.

Sources: distribution/reference grammar, and Docker's rule that a first component is a registry only when it has a dot, a colon
or is `localhost`; OCI Distribution Specification 1.1, "Pulling manifests"; Docker Registry token authentication specification.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING
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
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')

INDEX_TYPES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFEST_TYPES = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
LARGEST = 4 * 1024 * 1024
"""The largest token response in bytes that is parsed; also the specification's limit for manifests."""


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
            raise ImageReferenceError(f"`{text}` is not an image reference: `{digest}` is not a sha256 digest")
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
        return _Registry(parsed, transport).digest()
    finally:
        transport.close()


class _Registry:
    """Client of the repository of one image reference in its registry."""

    def __init__(self, reference: ImageReference, transport: Transport) -> None:
        self._reference = reference
        self._transport = transport
        self._source = f"registry `{reference.registry}`"
        self._url = f"{reference.base_url}/manifests/{reference.tag}"
        self._token = ""

    def digest(self) -> str:
        """Return the digest of the manifest: that of the response header, otherwise computed from the manifest itself."""
        stated = self._manifest("HEAD").headers.get("Docker-Content-Digest", "")
        if _DIGEST.fullmatch(stated):
            return stated
        return f"sha256:{hashlib.sha256(self._manifest('GET').body).hexdigest()}"

    def _manifest(self, method: str) -> Response:
        answer = self._request(method)
        challenge = answer.headers.get("WWW-Authenticate", "")
        if answer.status == 401 and challenge.lower().startswith("bearer ") and not self._token:
            self._token = self._new_token(dict(_CHALLENGE.findall(challenge)))
            answer = self._request(method)
        if answer.status == 404:
            raise ImageReferenceError(
                f"image `{self._reference.text}` does not exist: {self._source} does not know it",
                hints=("check the name and the tag",),
            )
        if answer.status != 200:
            raise refusal(answer.status, self._url, source=f"{self._source}, asked for `{self._reference.text}`,")
        return answer

    def _request(self, method: str) -> Response:
        headers = {"Accept": ", ".join((*INDEX_TYPES, *MANIFEST_TYPES))}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return self._transport.request(self._url, source=self._source, method=method, headers=headers)

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
            found = json.loads(answer.body) if len(answer.body) <= LARGEST else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise UnavailableError(f"the token service of {self._source} answers with something that is no token")
        return str(found.get("token") or found.get("access_token") or "")
