"""What brings a host to the part of a stack that it has to provide: repositories, packages, downloads and a build from source.

A setup is chosen with a stack, from the matrix and the facts of the host; it is written to the lock, and plans and rendered
scripts show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import field

from provisioner.spellings import KnownSha256, Line
from provisioner.strict_model import StrictModel, spelled

# Shells and package managers read these texts: a character that separates or quotes words has no place in them.
Word = Annotated[str, spelled(r"^[A-Za-z0-9@<][A-Za-z0-9@<>.:+=~*_/-]*$")]
Url = Annotated[str, spelled(r"^(https?://[^\x00-\x20\x7f'\"\\]+)?$")]

KERNEL, SYSTEM = "<kernel>", "<system>"
"""Parts of names and addresses that only the host knows: what `uname -r` prints, and VERSION_ID of /etc/os-release."""

INSTALLED = "installed"
"""The kind of a driver that its host has already, and that no known package brings."""


class Repository(StrictModel, frozen=True, kw_only=True, omit_defaults=True):
    """A repository to register, as `HostRepository` of the matrix for one platform and version; `sources` are its citations."""

    name: Word
    kind: Literal["keyring", "package", "repo-file", "apt-line", "yum"]
    package: Word | Literal[""] = ""
    url: Url = ""
    sha256: KnownSha256 = ""
    line: Line = ""
    key: Line = ""
    pin: Line = ""
    sources: tuple[Line, ...] = ()


class SetupStep(StrictModel, frozen=True, kw_only=True, omit_defaults=True):
    """What brings one component, of `version`, to a host; nothing that could be installed is known where all lists are empty.

    The repositories of these names are registered, `stream` is enabled, the packages `first` are installed, the versions of
    packages like `lock` (`*nvidia*580*`) are locked, then `packages` are installed. A
    component that is downloaded has `url`, or only the name of its `file`. `kind` is that of a driver package (`dkms`), or
    `INSTALLED`; `kernel` the pattern of the kernels that it is for (`6.8.*-generic`). `sources` are citations.
    """

    component: Word
    version: Word | Literal[""] = ""
    repositories: tuple[Word, ...] = ()
    stream: Word | Literal[""] = ""
    first: tuple[Word, ...] = ()
    lock: Annotated[str, spelled(r"^[0-9A-Za-z.*-]*$")] = ""
    packages: tuple[Word, ...] = ()
    kind: Word | Literal[""] = ""
    kernel: Annotated[str, spelled(r"^[0-9A-Za-z.*-]*$")] = ""
    url: Url = ""
    file: Word | Literal[""] = ""
    sha256: KnownSha256 = ""
    sources: tuple[Line, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether the matrix says how the component is installed, or the host has it already."""
        return bool(self.packages or self.url or self.file or self.kind == INSTALLED)


class BuildFromSource(StrictModel, frozen=True, kw_only=True, omit_defaults=True):
    """The compilation of `component` at the git tag of its version: variables of the build beside the stack's, and patches."""

    component: Word
    version: Word
    repository: Url
    environment: Mapping[Word, Line] = field(default_factory=dict)
    patches: tuple[Url, ...] = ()
    because: Line = ""
    sources: tuple[Line, ...] = ()


class HostSetup(StrictModel, frozen=True, kw_only=True, omit_defaults=True):
    """The steps that bring hosts that run `os` (`ubuntu 24.04`, `macos 10.13.6+17G65`) to a stack, in the order to take them.

    `driver_module` is the flavour of NVIDIA's kernel modules, "" for none. `build` is None where nothing is compiled.
    """

    os: Line
    driver_module: Literal["", "open", "proprietary"] = field(default="", name="driver-module")
    repositories: tuple[Repository, ...] = ()
    steps: tuple[SetupStep, ...] = ()
    build: BuildFromSource | None = None

    def step(self, component: str) -> SetupStep | None:
        """Return the step that brings a component; None when the setup has none."""
        return next((step for step in self.steps if step.component == component), None)
