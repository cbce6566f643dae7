"""What the build of a wheel adds to the files of the repository: the matrix, decoded, so that no machine has to parse its YAML.

Reading the YAML takes more than a second, once for each user and each empty cache, as in every CI job. The decoded matrix is
known by the hash of the YAML it was read from: where somebody changed that, it is left alone (`provisioner/matrix/cache.py`).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DecodedMatrix(BuildHookInterface[Any]):
    """Reads the matrix with the code that is being built. An editable installation reads the repository's YAML."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file and have it included; `version` is `standard` or `editable`. A matrix with mistakes ends the build."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from provisioner.matrix.cache import SHIPPED, ship

        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / SHIPPED
        ship(Path(self.root) / "matrices", path)
        build_data["force_include"][str(path)] = f"provisioner/matrices/{SHIPPED}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take the file away: the wheel has it now."""
        del build_data, artifact_path
        if version != "editable":
            self._folder.cleanup()
