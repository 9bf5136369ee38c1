"""Cells and tables, as Markdown and on the terminal.

On a terminal they have lines around them; in a file or a pipe they are columns of plain text, as wide as they need to
be unless the environment variable COLUMNS says how wide.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

LEAST_TEXT = 24  # least columns for running text; with fewer it could not be read
_GAP = "  "  # between columns of plain text
_BOX_CELL, _BOX_EDGE = 3, 1  # what lines and padding add per column, and once

NOTHING = "-"  # a cell without a value


@dataclass(frozen=True)
class Block:
    """Columns that stand beside each other: their numbers and widths."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]


@dataclass(frozen=True)
class TextTable:
    """A table for people; the first column says what a row is about and is part of every block.

    Attributes:
        title: Above it.
        header: One name per column; empty for a table without.
        rows: Cells as text.
        running: The last column holds sentences, which may go on in the next line.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    running: bool = False

    def blocks(self, width: int | None, *, boxed: bool) -> list[Block]:
        """How the columns are spread over blocks at most `width` wide, if that can be."""
        wide, narrow = self._widths(_length), self._widths(_longest_word)
        count = len(narrow)
        if width is None or _total(wide, boxed) <= width:
            return [Block(tuple(range(count)), tuple(wide))]
        if self.running:
            rest = width - _total([*narrow[:-1], 0], boxed)
            return [Block(tuple(range(count)), (*narrow[:-1], max(LEAST_TEXT, rest)))]
        found: list[list[int]] = [[0]]
        for column in range(1, count):
            if len(found[-1]) > 1 and _total([narrow[k] for k in (*found[-1], column)], boxed) > width:
                found.append([0])
            found[-1].append(column)
        return [Block(tuple(block), tuple(narrow[k] for k in block)) for block in found]

    def plain(self, width: int | None = None) -> str:
        """The table as plain text."""
        parts = ["\n".join(self._lines(block)) for block in self.blocks(width, boxed=False)]
        return "\n".join([self.title, "\n\n".join(parts)])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        from rich.text import Text

        if not console.is_terminal:
            yield Text(self.plain(_wanted_width()), no_wrap=True, overflow="ignore")
            return
        blocks = self.blocks(options.max_width, boxed=True)
        if any(_total(block.widths, boxed=True) > options.max_width for block in blocks):
            yield Text(self.plain(options.max_width), overflow="fold")  # too narrow even for one column
            return
        for number, block in enumerate(blocks):
            yield self._boxed(block, self.title if number == 0 else None)

    def _boxed(self, block: Block, title: str | None) -> Any:
        from rich.table import Table

        table = Table(title=title, title_justify="left", title_style="bold", show_header=bool(self.header))
        for column, width in zip(block.columns, block.widths, strict=True):
            name = "\n".join(_split(self.header[column], width)) if self.header else ""
            left = self._is_left(column)
            table.add_column(name, justify="left" if left else "right", min_width=width, no_wrap=not self._runs(column))
        for row in self.rows:
            table.add_row(*(row[column] for column in block.columns))
        return table

    def _lines(self, block: Block) -> Iterator[str]:
        """The lines of a block as plain text."""
        if self.header:
            names = [_split(self.header[c], w) for c, w in zip(block.columns, block.widths, strict=True)]
            height = max(map(len, names))
            yield from self._aligned(block, [[""] * (height - len(name)) + name for name in names])
            yield _GAP.join("-" * width for width in block.widths)
        for row in self.rows:
            cells = zip(block.columns, block.widths, strict=True)
            yield from self._aligned(block, [_split(row[c], w) if self._runs(c) else [row[c]] for c, w in cells])

    def _aligned(self, block: Block, cells: Iterable[list[str]]) -> Iterator[str]:
        """Cells of several lines each, beside each other."""
        for line in zip_longest(*cells, fillvalue=""):
            placed = zip(line, block.columns, block.widths, strict=True)
            yield _GAP.join(_padded(text, width, left=self._is_left(column)) for text, column, width in placed).rstrip()

    def _widths(self, header_width: Any) -> list[int]:
        """The least width of every column, with header lines as long as `header_width` says."""
        columns = zip(*self.rows, strict=True) if self.rows else [[]] * len(self.header)
        widths = [max(map(_length, cells), default=0) for cells in columns]
        names = self.header or [""] * len(widths)
        return [max(width, header_width(name)) for width, name in zip(widths, names, strict=True)]

    def _runs(self, column: int) -> bool:
        return self.running and column == self._last()

    def _is_left(self, column: int) -> bool:
        return column == 0 or self.running

    def _last(self) -> int:
        return len(self.header or self.rows[0]) - 1


def _total(widths: Sequence[int], boxed: bool) -> int:
    """The width of a block."""
    if boxed:
        return sum(widths) + _BOX_CELL * len(widths) + _BOX_EDGE
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _wanted_width() -> int | None:
    """The width in COLUMNS, if it holds one."""
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def _length(text: str) -> int:
    from rich.cells import cell_len  # some characters take two columns

    return cell_len(text)


def _longest_word(text: str) -> int:
    return max(map(_length, text.split()), default=0)


def _split(text: str, width: int) -> list[str]:
    """A text in lines."""
    if _length(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def _padded(text: str, width: int, *, left: bool) -> str:
    room = " " * (width - _length(text))
    return text + room if left else room + text


def cell_text(value: Any, form: str) -> str:
    """A value in its format; a dash where there is none."""
    return NOTHING if value is None or value != value else format(value, form)


def interval_text(estimate: float, low: float, high: float) -> str:
    """An estimate with its 95 % interval, "0.91 (0.88 to 0.93)"; alone where there are no limits but itself."""
    alone = low != low or low == high
    return cell_text(estimate, ".2f") + ("" if alone else f" ({low:.2f} to {high:.2f})")


@dataclass(frozen=True)
class Column:
    """A column of a table: what a row holds, and how it is shown.

    Attributes:
        title: In the header. key: Of the value in a row; a dash stands for a value that is not there.
        form: Format; a text is shown as it is. spread: Key of a standard deviation shown behind the value.
    """

    title: str
    key: str
    form: str = ""
    spread: str = ""

    def cell(self, row: Mapping[str, Any]) -> str:
        """The cell of a row."""
        value = row.get(self.key)
        if isinstance(value, str):
            return value
        text = cell_text(value, self.form)
        return f"{text} ± {cell_text(row.get(self.spread), self.form)}" if self.spread and value is not None else text


def table_cells(columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """(header, cells of every row), for `markdown_table` and `terminal_table`."""
    return [column.title for column in columns], [[column.cell(row) for column in columns] for row in rows]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, first column left, the others right."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in [list(header), rule, *escaped]) + "\n"


def terminal_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> TextTable:
    """A table for the terminal, first column left, the others right."""
    return TextTable(title, header, rows)
