"""What is told of newer series, and what is read for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.resolver.joint import choose
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import PACKAGE, Key
from provisioner.resolver.series import newer_series
from tests import small
from tests.file_shelf import LINUX, FileShelf, wheel

if TYPE_CHECKING:
    from provisioner.index.model import Environment, PackageSource


def test_of_each_series_nothing_but_the_newest_release_is_read() -> None:
    read: set[str] = set()

    class Noted(dict[str, tuple[str, ...]]):
        def get(self, key: str, default: object = None) -> tuple[str, ...]:
            read.add(key)
            return super().get(key, default)  # type: ignore[arg-type]

    matrix = small.matrix(("python",), {"python": {LINUX.python: {}}}, virtual=())
    request = small.request({"python": LINUX.python}, accelerator="cpu", packages=("demo<1.1",), runs="host")
    problem = join(matrix, request)
    versions = ("1.0.0", "1.1.0", "1.1.1", "1.2.0", "1.2.1", "1.2.2", "2.0")
    files = {"demo": [wheel("demo", one) for one in versions]}
    metadata = Noted(dict.fromkeys((f"demo {one}" for one in versions), ("none",)) | {"demo 1.0.0": ()})

    def source_for(environment: Environment) -> PackageSource:
        return FileShelf(files, metadata, environment, ())

    chosen = choose(problem, source_for)
    assert read == {"demo 1.0.0"}
    candidates = chosen[0].candidates(Key("demo", PACKAGE))
    newer = [one for one in candidates if one.label != "1.0.0"]
    (told,) = newer_series(problem, chosen, newer, source_for=source_for)
    assert told.releases == ("2.0", "1.2.2", "1.1.1")
    assert read == {"demo 1.0.0", "demo 1.1.1", "demo 1.2.2", "demo 2.0"}
