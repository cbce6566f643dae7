"""The package indexes that one run has opened, and the notices of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from packaging.requirements import Requirement

from provisioner.index.client import PackageIndex, Shared
from provisioner.index.read_limit import ReadLimit
from provisioner.workflow.progress import Progress

if TYPE_CHECKING:
    from provisioner.errors import UnavailableError
    from provisioner.grounds.notice import Notice
    from provisioner.index.model import Environment
    from provisioner.index.settings import IndexSettings
    from provisioner.workflow.inputs import Inputs


class Session:
    """Opens the package indexes once for each environment of a run, and closes all of them.

    Use it as a context manager. `notices` are complete when it is closed.
    """

    def __init__(self, inputs: Inputs, settings: IndexSettings, progress: Progress | None = None) -> None:
        self.settings = settings
        self.progress = progress if progress is not None else Progress()
        self._expected = [Requirement(text) for text in (*inputs.spec.packages, *inputs.spec.constraints)]
        self._shared = Shared(ReadLimit(settings.read_limit))
        self._sources: dict[Environment, PackageIndex] = {}
        self._notices: dict[Notice, None] = dict.fromkeys(inputs.remarks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            return  # after an interrupt, do not wait for running requests
        for source in self._sources.values():
            source.close()

    def open(self, environment: Environment) -> PackageIndex:
        """Return the client that reads the indexes for an environment, opened on first use."""
        if environment not in self._sources:
            source = PackageIndex(self.settings, environment, shared=self._shared)
            source.expect(self._expected)
            self._sources[environment] = source
            self.progress.add(source)
        return self._sources[environment]

    def tell(self, *notices: Notice) -> None:
        """Add notices; a repeated notice is ignored."""
        self._notices.update(dict.fromkeys(notices))

    @property
    def notices(self) -> tuple[Notice, ...]:
        """The notices for the user: those of the run first, then those of the indexes."""
        skipped = (one for source in self._sources.values() for one in source.skipped)
        return tuple({**self._notices, **dict.fromkeys(skipped)})

    @property
    def passed_over(self) -> tuple[UnavailableError, ...]:
        """The errors of unreachable indexes that were skipped although they might have had the answer."""
        return tuple(error for source in self._sources.values() for error in source.passed_over)
