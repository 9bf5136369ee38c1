"""`phygail play`."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from phygail.cli.options import Switch


@dataclass(frozen=True)
class Play:
    """Open the page to play: strike a swarm with a click and watch rules race to reconnect it.

    The page is one file that needs no network. For example:
      phygail play
      phygail play --out swarm.html
    """

    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE.html", help_behavior_hint="")] = None
    """Write the page to this file, to pass it on or to put it on a web server, instead of opening it."""
    quiet: Switch = False
    """Only print where the page is."""

    def run(self) -> int:
        """Open the page, or copy it; print where it is."""
        from phygail.cli.console import complain
        from phygail.files import read_text, write_text
        from phygail.web.build import PAGE

        page = PAGE
        if self.out is not None:
            page = self.out
            write_text(page, read_text(PAGE))
        elif not self.quiet and not webbrowser.open(PAGE.as_uri()):
            complain("there is no browser here: open the file below in one")
        print(page)
        return 0
