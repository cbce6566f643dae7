"""Image references as users write them: `ubuntu:24.04`, `nvcr.io/nvidia/pytorch:25.01-py3`, `localhost:5000/base@sha256:…`.

Source: distribution/reference grammar, and Docker's rule that a first component is a registry only when it has a dot, a
colon or is `localhost`.
"""

from __future__ import annotations

import re

from msgspec import Struct

from provisioner.errors import ProvisionError

DOCKER_HUB = "docker.io"
_HUB_NAMES = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
_LOOPBACK = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?")
_REGISTRY = re.compile(r"([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?")
_REPOSITORY = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class ImageReferenceError(ProvisionError):
    """A text is not the reference of an image, or no image has it."""

    code = "image-reference"
    exit_code = 2


class ImageReference(Struct, frozen=True, kw_only=True):
    """A reference taken apart; `text` is how the user wrote it. `digest` is "" when the reference has none."""

    text: str
    registry: str
    repository: str
    tag: str
    digest: str = ""

    @classmethod
    def parse(cls, text: str) -> ImageReference:
        """Read a reference; raises `ImageReferenceError` naming the part at fault."""
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
        """Where the registry keeps the repository. Loopback registries speak plain HTTP, as in every engine."""
        host = "registry-1.docker.io" if self.registry == DOCKER_HUB else self.registry
        scheme = "http" if _LOOPBACK.fullmatch(host) else "https"
        return f"{scheme}://{host}/v2/{self.repository}"
