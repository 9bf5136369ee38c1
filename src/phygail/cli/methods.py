"""`phygail methods`."""

from __future__ import annotations

from dataclasses import dataclass

from phygail.cli.options import Plugins


@dataclass(frozen=True)
class Methods:
    """Every method: name, scope, learned or not, needs which extra.

    For example:
      phygail methods
      phygail methods --plugin mine.py
    """

    plugin: Plugins = ()
    """Python file that registers further methods."""

    def run(self) -> int:
        """List them."""
        from rich.table import Table

        from phygail.cli.console import stdout
        from phygail.evaluation.roster import load_methods
        from phygail.methods import METHODS

        load_methods(self.plugin)
        table = Table(title="Methods", title_justify="left", title_style="bold")
        for column in ("name", "scope", "learned", "needs", "what it does"):
            table.add_column(column)
        for name in METHODS:
            cls = METHODS.get(name)
            needs = f"phygail[{cls.extra}]" if cls.extra else ""
            table.add_row(name, cls.scope.value, "yes" if cls.learned else "no", needs, cls.summary)
        stdout().print(table)
        return 0
