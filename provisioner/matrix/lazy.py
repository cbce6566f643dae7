"""Rows that are decoded when somebody first looks at them, so that a command pays for the part of a matrix it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar, overload

Row = TypeVar("Row")


class LazyRows(Sequence[Row], Generic[Row]):
    """A sequence made by `load` at first use."""

    __slots__ = ("_load", "_rows")

    def __init__(self, load: Callable[[], tuple[Row, ...]]) -> None:
        self._load = load
        self._rows: tuple[Row, ...] | None = None

    def _all(self) -> tuple[Row, ...]:
        if self._rows is None:
            self._rows = self._load()
        return self._rows

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[Row]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


class LazyMapping(Mapping[str, Row], Generic[Row]):
    """A mapping made by `load` at first use."""

    __slots__ = ("_load", "_rows")

    def __init__(self, load: Callable[[], dict[str, Row]]) -> None:
        self._load = load
        self._rows: dict[str, Row] | None = None

    def _all(self) -> dict[str, Row]:
        if self._rows is None:
            self._rows = self._load()
        return self._rows

    def __getitem__(self, key: str) -> Row:
        return self._all()[key]

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._all() == dict(other)

    def __hash__(self) -> int:
        raise TypeError("a mapping is not hashable")

    def __repr__(self) -> str:
        return repr(self._all())
