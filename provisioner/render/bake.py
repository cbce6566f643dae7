"""Render a lock as a Bake file of docker buildx, in HCL.

Sources: docs.docker.com/build/bake/reference, and HCL's native syntax (github.com/hashicorp/hcl, hclsyntax/spec.md: quoted
templates), 2026-11-23.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from provisioner.render.container import repository, tag, workloads
from provisioner.render.header import header

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the Bake file of a lock, for the folder that has the lock and its Dockerfile.

    All values are names and platforms of letters, digits and `-`, `/`, for which JSON's quotes are HCL's. Raises
    `UnrenderableError` when the lock is not for containers.
    """
    found = workloads(lock, "a Bake file")
    platforms = sorted(platform for one in found for platform in one.platforms)
    name = repository(lock)
    use = (
        "To build the image: docker buildx bake",
        "To push it: REGISTRY=registry.example/team/ docker buildx bake --push",
        "For an index with a private CA and logins: --set '*.secrets=id=ca,src=ca.pem' --set '*.secrets=id=netrc,src=.netrc'",
    )
    return f"""\
{header(lock, lock_file_name, *use)}

variable "REGISTRY" {{
  default = ""
}}

group "default" {{
  targets = [{json.dumps(name)}]
}}

target {json.dumps(name)} {{
  context    = "."
  dockerfile = "Dockerfile"
  platforms  = {json.dumps(platforms)}
  tags       = ["${{REGISTRY}}{name}:{tag(lock)}"]
}}
"""
