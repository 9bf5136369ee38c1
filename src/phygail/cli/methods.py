"""`phygail methods`."""

from __future__ import annotations

import json
from dataclasses import dataclass

from phygail.cli.options import Plugins, Switch


@dataclass(frozen=True)
class Methods:
    """Every method: name, scope, learned or not, needs which extra.

    For example:
      phygail methods
      phygail methods --plugin mine.py
      phygail methods --json
    """

    plugin: Plugins = ()
    """Python file that registers further methods."""
    json: Switch = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        """List them."""
        from phygail.cli.options import stdout
        from phygail.methods import METHODS
        from phygail.methods.base import installed, load_methods
        from phygail.render.tables import TextTable

        load_methods(self.plugin)
        known = [METHODS.get(name) for name in METHODS]
        if self.json:
            facts = [
                {"name": cls.name, "scope": cls.scope.value, "learned": cls.learned, "extra": cls.extra,
                 "installed": installed(cls), "summary": cls.summary}
                for cls in known
            ]  # fmt: skip
            print(json.dumps({"methods": facts}, indent=1))
            return 0
        header = ("name", "scope", "learned", "extra", "what it does")
        rows = [
            [cls.name, cls.scope.value, "yes" if cls.learned else "no", cls.extra or "", cls.summary] for cls in known
        ]
        stdout().print(TextTable("Methods (an extra is installed by pip install 'phygail[EXTRA]')", header, rows, True))
        return 0
