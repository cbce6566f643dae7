"""Image registries: the digest behind a tag, and what an image's configuration declares.

Source: OCI Distribution Specification 1.1, "Pulling manifests"; Docker Registry token authentication specification.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from provisioner.errors import UnavailableError
from provisioner.index.http.transport import Response, Transport, refusal
from provisioner.index.reference import ImageReference, ImageReferenceError

if TYPE_CHECKING:
    from provisioner.index.http.settings import IndexSettings

INDEX_TYPES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFEST_TYPES = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
LARGEST = 4 * 1024 * 1024
"""Bytes. The specification's own limit for manifests; configurations stay far below it too."""

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


def image_config(reference: str, *, settings: IndexSettings, platform: str = "linux/amd64") -> dict[str, Any]:
    """The configuration of an image for one platform, as the registry stores it: `config.Env`, `config.Labels` and so on.

    Raises as `resolve_digest` does, and `ImageReferenceError` when the image is not built for the platform.
    """
    registry = _Registry(ImageReference.parse(reference), settings)
    try:
        return registry.config(platform)
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

    def config(self, platform: str) -> dict[str, Any]:
        manifest = self._json(self._manifest(f"manifests/{self._reference.digest or self._reference.tag}"))
        if "manifests" in manifest:
            digest = self._platform_digest(manifest, platform)
            manifest = self._json(self._verified(self._manifest(f"manifests/{digest}"), digest))
        digest = str(_at(manifest, "config", "digest") or "")
        if not _DIGEST.fullmatch(digest):
            raise UnavailableError(f"{self._source} gives no configuration for `{self._reference.text}`")
        config = self._json(self._verified(self._manifest(f"blobs/{digest}"), digest))
        return _for_platform(config, platform, self._reference)

    def _platform_digest(self, index: dict[str, Any], platform: str) -> str:
        system, _, architecture = platform.partition("/")
        listed = [entry for entry in index["manifests"] if isinstance(entry, dict)]
        for entry in listed:
            if _at(entry, "platform", "os") == system and _at(entry, "platform", "architecture") == architecture:
                return str(entry.get("digest"))
        known = {f"{_at(entry, 'platform', 'os')}/{_at(entry, 'platform', 'architecture')}" for entry in listed}
        raise _not_for(self._reference, platform, sorted(known - {"unknown/unknown"}))

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
        found = self._json(answer)
        return str(found.get("token") or found.get("access_token") or "")

    def _verified(self, answer: Response, digest: str) -> Response:
        if _digest_of(answer.body) != digest:
            raise UnavailableError(f"{self._source} sends something else than {digest} for `{self._reference.text}`")
        return answer

    def _json(self, answer: Response) -> dict[str, Any]:
        try:
            found = json.loads(answer.body) if len(answer.body) <= LARGEST else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise UnavailableError(f"{self._source} answers `{self._reference.text}` with something that is not a manifest")
        return found


def _digest_of(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _at(entry: dict[str, Any], outer: str, inner: str) -> object:
    below = entry.get(outer)
    return below.get(inner) if isinstance(below, dict) else None


def _for_platform(config: dict[str, Any], platform: str, reference: ImageReference) -> dict[str, Any]:
    built = f"{config.get('os', '')}/{config.get('architecture', '')}"
    if built not in {platform, "/"}:
        raise _not_for(reference, platform, [built])
    return config


def _not_for(reference: ImageReference, platform: str, known: list[str]) -> ImageReferenceError:
    return ImageReferenceError(
        f"image `{reference.text}` is not built for {platform}; it is for {', '.join(known) or 'nothing'}"
    )
