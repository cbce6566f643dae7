"""The container gate: NVIDIA_REQUIRE_CUDA that says exactly what was solved.

Grammar (nvidia-container-toolkit, internal/requirements): spaces are OR, commas AND; properties `cuda`, `driver`, `arch`,
`brand`; a driver compares as a version, `arch` as a compute capability, a brand as a string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.coverage import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.solve.drivers import RunsCuda


def require_cuda(tests: Sequence[RunsCuda], arch_list: Sequence[str]) -> str:
    """Write the requirement of a stack: one of its driver ways AND one of its GPU ranges, as an OR of AND terms."""
    test = tests[0]
    ways = [f"driver>={test.floor}"] if test.floor is not None else [f"cuda>={test.cuda_level}"]
    ways.extend(f"brand=tesla,driver>={branch},driver<{int(branch) + 1}" for branch in test.forward_branches)
    ranges = _arch_ranges(arch_list) or [""]
    return " ".join(f"{way},{span}" if span else way for way in ways for span in ranges)


def _arch_ranges(arch_list: Sequence[str]) -> list[str]:
    """Compute-capability ranges the compiled targets serve: a cubin serves its own major from its minor up.

    PTX is left out: whether it may be compiled at start depends on the driver, which the gate cannot say per GPU.
    """
    spans: dict[int, int] = {}
    for text in arch_list:
        target = Target.parse(text)
        if text.startswith("sm_") and not target.suffix:
            major, minor = target.capability
            spans[major] = min(minor, spans.get(major, minor))
    merged: list[tuple[tuple[int, int], int]] = []
    for major, minor in sorted(spans.items()):
        if merged and merged[-1][1] == major and minor == 0:
            merged[-1] = (merged[-1][0], major + 1)
        else:
            merged.append(((major, minor), major + 1))
    return [f"arch>={low[0]}.{low[1]},arch<{high}.0" for low, high in merged]
