"""pip, told the markers of another machine: `python pip_for_target.py MARKERS.json install …`.

`--platform` and `--python-version` choose pip's files for a target, but its markers stay those of the interpreter that runs
it (pip's documentation of `pip download`, and its issue 11664). So the variables of PEP 508 are replaced before pip starts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> int:
    """Replace the markers and run pip with the rest of the command line."""
    from pip._internal.cli.main import main as pip
    from pip._vendor.packaging import markers

    told: Any = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    markers.default_environment = lambda: told
    return int(pip(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
