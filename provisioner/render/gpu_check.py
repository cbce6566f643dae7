"""Write the check of a machine's NVIDIA GPUs and driver against a lock, for POSIX shell scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.render.node_affinity import intervals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.render.node_affinity import Served
    from provisioner.versions import Range

NUMBER = 'number() { echo "$1" | awk -F. \'{ printf "%d%04d%04d", $1, $2, $3 }\'; }'
"""The shell function that turns a version of up to three numbers into one number, for comparison."""


def gpu_check(served: Served, *, of_gpu: str = "refuse") -> Iterator[str]:
    """Yield the lines that call the function `refuse` with what is wrong, for GPUs or a driver that the lock excludes.

    The script must define `refuse`, and `of_gpu`, which is called for a GPU that no driver helps. Raises `UnrenderableError`
    for a driver version of more than three numbers.
    """
    named = ", ".join("{}.{}".format(*one) for one in sorted({one for _, those in served for one in those}))
    yield from (
        NUMBER,
        "gpus=$(nvidia-smi --query-gpu=compute_cap,driver_version --format=csv,noheader) || refuse 'nvidia-smi lists no GPU'",
        "for gpu in $(echo \"$gpus\" | tr -d ' '); do",
        '    driver=$(number "${gpu#*,}")',
        "    case ${gpu%%,*} in",
    )
    ways: dict[frozenset[tuple[int, int]], list[Range]] = {}
    for wanted, those in served:
        ways.setdefault(those, []).append(wanted)
    for those, ranges in ways.items():
        pattern = " | ".join("{}.{}".format(*one) for one in sorted(those))
        needed = " or ".join(map(str, ranges))
        yield f"    {pattern})"
        yield f'        {in_ranges(ranges)} || refuse "it needs driver {needed}, and the driver is ${{gpu#*,}}"'
        yield "        ;;"
    yield f'    *) {of_gpu} "it needs compute capability {named}, and a GPU has ${{gpu%%,*}}" ;;'
    yield "    esac"
    yield "done"


def in_ranges(ranges: Iterable[Range]) -> str:
    """Return a command that succeeds if the shell's `$driver`, as `NUMBER` writes it, is in one of some ranges of drivers."""
    tests = " || ".join(_test(low, high) for wanted in ranges for low, high in intervals(wanted)) or "false"
    return f"{{ {tests}; }}"


def _test(low: tuple[int, ...], high: tuple[int, ...] | None) -> str:
    """Return a test of the number of a driver."""
    tests = [f'[ "$driver" -ge {as_number(low)} ]', *([f'[ "$driver" -lt {as_number(high)} ]'] if high else [])]
    return tests[0] if len(tests) == 1 else f"{{ {' && '.join(tests)}; }}"


def as_number(version: tuple[int, ...]) -> str:
    """Return the number that `NUMBER` makes of a version."""
    major, *rest = version
    return f"{major}{''.join(f'{part:04}' for part in rest)}"
