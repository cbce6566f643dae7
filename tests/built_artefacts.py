"""Real shared libraries and wheels with GPU code in them, for tests of what measures artefacts.

Libraries come from the compiler at hand; fat binaries are put together from heads as NVIDIA's `fatbinary` writes them.
"""

from __future__ import annotations

import io
import struct
import subprocess
import zipfile
from typing import TYPE_CHECKING

from tests.loopback_index import ServedFile, normalized

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.loopback_index import LoopbackIndex

SOURCE = '#include <stdio.h>\nint shout(void) { return puts("here"); }\n'


def fat_binary(*targets: str, payload: int = 24) -> bytes:
    """A container with an entry for each of `sm_90`, `sm_90a`, `sm_100f`, `compute_90`; each image is `payload` bytes."""
    entries = b"".join(fat_entry(target, payload=payload) for target in targets)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def fat_entry(target: str, *, payload: int = 24) -> bytes:
    """One entry of a container, its image all zeros."""
    kind, _, number = target.partition("_")
    flags = 0x8011 | {"a": 1 << 20, "f": 1 << 21}.get(number[-1], 0)
    head = struct.pack(
        "<HHIQIIHHIIIQQQ",
        *({"compute": 1, "sm": 2}[kind], 0x101, 64, payload, payload, 0, 8, 1, int(number.rstrip("af")), 0, 0, flags, 0, 0),
    )
    return head + bytes(payload)


def shared_library(folder: Path, *, section: bytes = b"", source: str = SOURCE, flags: tuple[str, ...] = ()) -> bytes:
    """A shared library compiled from `source` (C, or C++ with `-xc++` in `flags`), with `section` as its `.nv_fatbin`."""
    (folder / "code.c").write_text(source, encoding="utf-8")
    (folder / "fat.bin").write_bytes(section)
    lines = ['.section .nv_fatbin,"a"', ".balign 8", '.incbin "fat.bin"', '.section .note.GNU-stack,"",@progbits', ""]
    (folder / "fat.s").write_text("\n".join(lines), encoding="utf-8")
    subprocess.run(["gcc", "-c", "-fPIC", *flags, "code.c", "-o", "code.o"], cwd=folder, check=True)
    subprocess.run(["gcc", "-c", "fat.s", "-o", "fat.o"], cwd=folder, check=True)
    link = ["gcc", "-shared", "-Wl,-soname,libcode.so.1", "code.o", "fat.o", "-o", "libcode.so"]
    library = ["-lstdc++"] if "-xc++" in flags else []
    subprocess.run([*link, *library], cwd=folder, check=True)
    return (folder / "libcode.so").read_bytes()


def zipped(members: Mapping[str, bytes], *, stored: tuple[str, ...] = ()) -> bytes:
    """A wheel with just these members; those in `stored` are not packed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in members.items():
            method = zipfile.ZIP_STORED if path in stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), content, method)
    return buffer.getvalue()


def serve(index: LoopbackIndex, filename: str, content: bytes, *, requires_python: str | None = None) -> ServedFile:
    """List a file in an index, under the project its name begins with."""
    served = ServedFile(
        filename=filename,
        path=f"/files/{filename}",
        content=content,
        metadata=None,
        requires_python=requires_python,
        upload_time=None,
        yanked=None,
    )
    files = index.pages.setdefault("simple", {}).setdefault(normalized(filename.partition("-")[0]), [])
    files[:] = [file for file in files if file.filename != filename]
    files.append(served)
    index.files[served.path] = served
    return served
