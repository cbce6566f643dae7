"""Whether what pages took is given back to the system, measured in a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
from provisioner.index.http.allocator import give_back_large_blocks

def resident():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize()

asked = give_back_large_blocks() if sys.argv[1] == "asked" else False
bytearray(24 << 20)  # what is let go of here is what glibc adapts to
kept, pages = [], []
for _ in range(8):
    pages.append(bytearray(b"x") * (4 << 20))
    kept.append(bytearray(b"x") * 4000)
before = resident()
pages.clear()
print(asked, before - resident() > 30 << 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has this call")
@pytest.mark.parametrize(("how", "words"), [("asked", "True True"), ("as it is", "False False")])
def test_large_blocks_go_back_to_the_system_when_that_was_asked(how: str, words: str) -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == words
