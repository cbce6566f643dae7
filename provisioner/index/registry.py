"""Image registries: the digest behind a tag.

Source: OCI Distribution Specification 1.1, "Pulling manifests"; Docker Registry token authentication specification.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from provisioner.errors import UnavailableError
from provisioner.index.http.transport import Response, Transport, refusal
from provisioner.index.reference import ImageReference, ImageReferenceError

if TYPE_CHECKING:
    from provisioner.index.http.settings import IndexSettings

INDEX_TYPES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFEST_TYPES = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
LARGEST = 4 * 1024 * 1024
"""Bytes. The specification's own limit for manifests; tokens stay far below it."""

_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def resolve_digest(reference: str, *, settings: IndexSettings) -> str:
    """The digest (`sha256:…`) a reference stands for now; a reference that has one already is not looked up.

    Raises `ImageReferenceError` for a reference that is none or that the registry does not know, `UnavailableError` when
    the registry cannot be asked.
    """
    parsed = ImageReference.parse(reference)
    if parsed.digest:
        return parsed.digest
    registry = _Registry(parsed, settings)
    try:
        return registry.digest()
    finally:
        registry.close()


class _Registry:
    """One repository of one registry, asked for one image."""

    def __init__(self, reference: ImageReference, settings: IndexSettings) -> None:
        if settings.offline:
            raise UnavailableError(
                f"offline: the registry of `{reference.text}` cannot be asked",
                hints=("write the image with its digest, or run without --offline",),
            )
        self._reference = reference
        self._transport = Transport(settings)
        self._source = f"registry `{reference.registry}`"
        self._token = ""
        self.close = self._transport.close

    def digest(self) -> str:
        path = f"manifests/{self._reference.tag}"
        headers = self._manifest(path, method="HEAD").headers
        stated = headers.get("Docker-Content-Digest", "")
        if _DIGEST.fullmatch(stated):
            return stated
        return _digest_of(self._manifest(path).body)

    def _manifest(self, path: str, *, method: str = "GET") -> Response:
        answer = self._ask(path, method)
        challenge = answer.headers.get("WWW-Authenticate", "")
        if answer.status == 401 and challenge.lower().startswith("bearer ") and not self._token:
            self._token = self._new_token(dict(_CHALLENGE.findall(challenge)))
            answer = self._ask(path, method)
        if answer.status == 404:
            raise ImageReferenceError(
                f"image `{self._reference.text}` does not exist: {self._source} does not know it",
                hints=("check the name and the tag",),
            )
        if answer.status != 200:
            raise refusal(answer.status, self._url(path), source=f"{self._source}, asked for `{self._reference.text}`,")
        return answer

    def _ask(self, path: str, method: str) -> Response:
        headers = {"Accept": ", ".join((*INDEX_TYPES, *MANIFEST_TYPES))}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return self._transport.request(self._url(path), source=self._source, method=method, headers=headers)

    def _url(self, path: str) -> str:
        return f"{self._reference.base_url}/{path}"

    def _new_token(self, challenge: dict[str, str]) -> str:
        """An anonymous token: what everybody may pull needs no account."""
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


def _digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
