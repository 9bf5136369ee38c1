"""One visible registry per kind of thing; unknown names get an error that says which ones exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from phygail.config import InputError

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to entries, in the order of registration.

    Attributes:
        kind: What the entries are, for error messages ("method").

    Args:
        kind: See above.
        aliases: Other names of entries.
        retired: Names that nothing may carry, each with the line that says what became of it.
    """

    def __init__(
        self, kind: str, aliases: Mapping[str, str] | None = None, retired: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self._aliases = dict(aliases or {})
        self._retired = dict(retired or {})
        self._entries: dict[str, T] = {}

    def add(self, name: str, entry: T) -> T:
        """Register `entry` under `name`; a name is given once."""
        if name in self._retired:
            raise InputError(f"{self.kind} {name!r}: {self._retired[name]}")
        if name in self._aliases:
            raise InputError(f"{self.kind} {name!r} is another name of {self._aliases[name]}: choose another name")
        if name in self._entries:
            raise InputError(f"{self.kind} {name!r} is registered twice: choose another name")
        self._entries[name] = entry
        return entry

    def get(self, name: str) -> T:
        """The entry called `name`, or a clear error with the nearest names."""
        name = self.canonical(name)
        if name in self._retired:
            raise InputError(f"{self.kind} {name!r}: {self._retired[name]}")
        if name not in self._entries:
            near = difflib.get_close_matches(name, self._entries, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(f"unknown {self.kind} {name!r}: {hint}there are {', '.join(self._entries)}")
        return self._entries[name]

    def canonical(self, name: str) -> str:
        """The one name of an entry that may have several."""
        return self._aliases.get(name, name)

    def names(self) -> list[str]:
        """All names, in the order of registration."""
        return list(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._aliases
