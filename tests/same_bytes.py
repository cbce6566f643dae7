"""One project that is locked again and again, by other Pythons and on other machines: its spec, its index, what it writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.loopback_index import LoopbackIndex

SPEC = f"""\
name: trial
target: {{platform: [linux/amd64, linux/arm64]}}
accelerator: cpu
requires: {{python: "==3.12"}}
packages:
  - alpha[more]>=1  # Grüße
  - 'gamma; platform_machine == "x86_64"'
  - delta
indexes: [{{name: local, url: "INDEX"}}]
image: {{base: "python:3.12-slim-bookworm@sha256:{"d" * 64}"}}
outputs: [dockerfile, requirements]
"""
PROVENANCE = Path(__file__).parent / "fixtures" / "provenance.json"


def offer(index: LoopbackIndex) -> None:
    """What the spec needs: extras, compiled wheels of both machines, dates, attestations, a local version."""
    stamp = "2026-02-03T04:05:06Z"
    alpha = index.add_wheel(
        "alpha", "1.5", requires=["beta>=1", 'epsilon; extra == "more"'], extras=["more"], upload_time=stamp, provenance=True
    )
    attested = PROVENANCE.read_bytes().replace(b"release.yml", "Grüße.yml".encode())
    index.serve(f"/integrity/{alpha}/provenance", attested, content_type="application/json")
    index.add_wheel("beta", "2.0+local.1", upload_time="2025-12-31T23:59:59.999999Z", requires_python=">=3.9,<4")
    index.add_wheel("epsilon", "0.1", upload_time=stamp)
    index.add_wheel("gamma", "1!3.0", upload_time=stamp)
    for machine in ("x86_64", "aarch64"):
        index.add_wheel("delta", "4.0", tag=f"cp312-cp312-manylinux_2_17_{machine}", upload_time=stamp)
        index.add_wheel("uv", "0.9.11", tag=f"py3-none-manylinux_2_17_{machine}", upload_time=stamp)


def outputs(folder: Path) -> dict[str, bytes]:
    """Every file that was written beside the spec, by its path."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: files[name].read_bytes() for name in sorted(files) if name != "provision.yaml"}
