"""Run one command and print what it cost: wall seconds, processor seconds, peak memory in MiB, exit code.

A program of its own, started as `python -I -S measure.py [--limit SECONDS] OUTPUT COMMAND…`: Linux counts the memory of the
process that starts a child into the child's peak, so the starter must be smaller than anything it measures. The peak is that of
the whole process tree: the kernel's own figure for the largest process, or the largest sum over processes that ran at the same
time, whichever is more. A command that takes longer than its limit is killed with everything it started, and its exit code is
124, as `timeout` has it.
"""

import os
import signal
import sys
import threading
from contextlib import suppress
from time import perf_counter

_PAUSE_SECONDS = 0.02
TIMED_OUT = 124


def main() -> None:
    """Run the command with its output in a file, and print the figures in one line."""
    words = sys.argv[1:]
    limit = float(words[1]) if words[0] == "--limit" else None
    output, *command = words[2:] if limit is not None else words
    target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, target, 1), (os.POSIX_SPAWN_DUP2, target, 2)]
    start = perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=actions, setpgroup=0)
    watch = Watch(child, None if limit is None else start + limit)
    watch.start()
    _, status, usage = os.wait4(child, 0)
    wall = perf_counter() - start
    watch.stop()
    largest = usage.ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    code = TIMED_OUT if watch.has_killed else os.waitstatus_to_exitcode(status)
    sys.stdout.write(f"{wall:.6f} {usage.ru_utime + usage.ru_stime:.6f} {max(largest, watch.peak):.1f} {code}\n")


class Watch(threading.Thread):
    """Adds up the memory of a process and everything it started, and ends them all when their time is up."""

    def __init__(self, root: int, deadline: float | None) -> None:
        super().__init__(daemon=True)
        self.root, self.deadline = root, deadline
        self.peak, self.has_killed = 0.0, False
        self._stopped = threading.Event()

    def run(self) -> None:
        """Sample until stopped. One process needs no samples: the kernel's own figure misses nothing."""
        while not self._stopped.wait(_PAUSE_SECONDS):
            if self.deadline is not None and perf_counter() > self.deadline:
                self.has_killed = True
                with suppress(ProcessLookupError):  # it has just ended by itself
                    os.killpg(self.root, signal.SIGKILL)
                return
            tree = _tree(self.root)
            if len(tree) > 1:
                self.peak = max(self.peak, sum(_resident(one) for one in tree))

    def stop(self) -> None:
        """Take no more samples."""
        self._stopped.set()
        self.join()


def _tree(root: int) -> list[int]:
    """A process and its descendants, as far as they still run; only the process itself where the kernel does not list them."""
    found = [root]
    for process in found:  # the list grows while it is read
        try:
            for task in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 - pathlib would weigh more than what is measured
                with open(f"/proc/{process}/task/{task}/children", encoding="ascii") as children:  # noqa: PTH123
                    found += [int(one) for one in children.read().split()]
        except OSError:
            continue
    return found


def _resident(process: int) -> float:
    """Resident memory of a process in MiB; 0 for one that has just ended."""
    try:
        with open(f"/proc/{process}/statm", encoding="ascii") as figures:  # noqa: PTH123
            return int(figures.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1024 * 1024)
    except (OSError, IndexError):
        return 0.0


if __name__ == "__main__":
    main()
