"""Reports as a validation would make them, for the tests of what is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.evidence.report import (
    LEVELS,
    EngineReport,
    FieldReport,
    GpuReport,
    HostReport,
    LevelReport,
    LoadReport,
    Report,
    overall,
)

if TYPE_CHECKING:
    from provisioner.evidence.report import Verdict

HOSTILE = "<script>alert(1)</script> ]]> & \"'\x00\x1b[31m\u202e\ufffe \N{GREEK SMALL LETTER ALPHA}"
"""A text that breaks what escapes too little: markup, ends of sections, control characters, a reversed direction."""


def report(
    *verdicts: Verdict, idle: tuple[int, ...] = (), digest: str = "a", platform: str = "linux/amd64", time: str = "14:00:00"
) -> Report:
    """A report of the levels from 0 on with these verdicts, one fact each, but for the levels that have nothing to do."""
    shown = {"yes": "3.12.4", "no": "3.11.9", "unverified": ""}
    facts = tuple(
        FieldReport(name=f"fact {level}", locked="3.12", measured=shown[verdict], verdict=verdict, level=level)
        for level, verdict in enumerate(verdicts)
        if level not in idle
    )
    levels = tuple(
        LevelReport(level=level, name=LEVELS[level], verdict="nothing to do", note="no image")
        if level in idle
        else LevelReport(level=level, name=LEVELS[level], verdict=verdict)
        for level, verdict in enumerate(verdicts)
    )
    return Report(
        name="trainer",
        lock_file="pylock.trainer.toml",
        lock_digest=f"sha256:{'1' * 64}",
        lock_sha256=f"sha256:{digest * 64}",
        tool_version="0.1.0",
        matrix_digest=f"sha256:{'2' * 64}",
        platform=platform,
        engine=EngineReport(name="docker", version="26.1.5", builder="docker buildx 0.13.1"),
        image=f"sha256:{'b' * 64}",
        dockerfile=f"sha256:{'d' * 64}",
        host=HostReport(),
        level=len(verdicts) - 1,
        verdict=overall(facts),
        levels=levels,
        fields=facts,
        time=f"2026-11-23T{time}Z",
        timing={"build": 1.5, "run": 2.0},
    )


def gpu_report() -> Report:
    """A report that has all there can be in one: GPUs, load, digests in registries, each verdict, a level without facts."""
    found = report("yes", "yes", "no", "yes", "unverified", idle=(0,))
    load = LoadReport(
        device="cuda:0",
        name="NVIDIA H100",
        teraflops=690.5,
        gigabytes_per_second=2900.0,
        memory_checked=68719476736,
        seconds=5.0,
    )
    facts = (*found.fields, FieldReport(name="na\u00efve", locked="", measured=HOSTILE, verdict="no", note=HOSTILE, level=2))
    return replace(
        found,
        image_digests=(f"registry.example.org/team/trainer@sha256:{'c' * 64}",),
        host=HostReport(
            kernel="6.8.0-45-generic",
            driver="550.54.15",
            gpus=(GpuReport(name="NVIDIA H100", identity=f"sha256:{'e' * 64}"), GpuReport(name="NVIDIA T4")),
        ),
        fields=facts,
        load=(load,),
    )
