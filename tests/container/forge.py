"""Change a file of an installed package, its RECORD and its bytecode alike, so that no hash tells.

It makes a fault for the levels above files.

Usage: forge PACKAGE FILE append TEXT | forge PACKAGE FILE replace OLD NEW | forge PACKAGE FILE remove
       forge PACKAGE FILE patch OLD NEW     (bytes, in hexadecimal)
"""

import base64
import csv
import hashlib
import sys
from pathlib import Path

SITE = Path("/opt/venv/lib/python3.11/site-packages")


def main(package: str, name: str, action: str, *words: str) -> None:
    """Change one file, whose path is relative to the folder of the packages."""
    (record,) = SITE.glob(f"{package}-*.dist-info/RECORD")
    rows = list(csv.reader(record.read_text().splitlines()))
    kept = [row for row in rows if row[0] != name]
    assert len(kept) == len(rows) - 1, name
    content = (SITE / name).read_bytes()
    (SITE / name).unlink()
    for bytecode in (SITE / name).parent.glob(f"__pycache__/{Path(name).stem}.*.pyc"):
        bytecode.unlink()  # it is never compared with its source, and would run instead
    if action != "remove":
        texts = [bytes.fromhex(word) if action == "patch" else word.encode() for word in words]
        changed = content + texts[0] + b"\n" if action == "append" else content.replace(texts[0], texts[-1])
        assert changed != content, name
        (SITE / name).write_bytes(changed)
        digest = base64.urlsafe_b64encode(hashlib.sha256(changed).digest()).rstrip(b"=").decode()
        kept.append([name, f"sha256={digest}", str(len(changed))])
    with record.open("w") as stream:
        csv.writer(stream, lineterminator="\n").writerows(kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
