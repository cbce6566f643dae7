"""Run one command and print what it cost: wall seconds, processor seconds, peak memory in MiB, exit code.

A program of its own, started as `python -I -S measure.py OUTPUT COMMAND…`: Linux counts the memory of the process that starts
a child into the child's peak, so the starter must be smaller than anything it measures.
"""

import os
import sys
from time import perf_counter


def main() -> None:
    """Run the command with its output in a file, and print the figures in one line."""
    output, *command = sys.argv[1:]
    target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, target, 1), (os.POSIX_SPAWN_DUP2, target, 2)]
    start = perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(child, 0)
    wall = perf_counter() - start
    peak = usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    sys.stdout.write(f"{wall:.6f} {usage.ru_utime + usage.ru_stime:.6f} {peak:.1f} {os.waitstatus_to_exitcode(status)}\n")


if __name__ == "__main__":
    main()
