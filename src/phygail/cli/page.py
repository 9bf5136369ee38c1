"""`phygail play` and `phygail serve`."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from phygail.cli.options import Count, Plugins, Switch
from phygail.config import InputError

MOST_PORT = 65_535


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
        from phygail.cli.options import note
        from phygail.files import read_text, write_text
        from phygail.web.build import PAGE

        page = PAGE
        if self.out is not None:
            page = self.out
            write_text(page, read_text(PAGE))
        elif not self.quiet and not webbrowser.open(PAGE.as_uri()):
            note("there is no browser here: open the file below in one")
        print(page)
        return 0


@dataclass(frozen=True)
class Serve:
    """The page to play with a server behind it: planners, your plugins, recorded runs.

    Only this machine can reach it unless --host says otherwise; then a token guards it. For example:
      phygail serve
      phygail serve --plugin own_method.py --runs results
    """

    host: str = "127.0.0.1"
    """Where to listen, e.g. 0.0.0.0 for the network."""
    port: Count = 8765
    """0 takes one that is free."""
    plugin: Plugins = ()
    """Python file that registers further methods."""
    runs: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder with results of phygail compare, to look at and to fly again."""
    quiet: Switch = False
    """Open no browser."""

    def run(self) -> int:
        """Serve until Ctrl-C."""
        import socket

        if not 0 <= self.port <= MOST_PORT:
            raise InputError(f"port {self.port}: choose from 0 to {MOST_PORT:,}")
        try:
            import uvicorn

            from phygail.web.messages import MOST_BYTES
            from phygail.web.server import make_app, make_settings
        except ModuleNotFoundError as error:
            raise InputError(f"serving needs {error.name}: pip install 'phygail[web]'") from None
        from phygail.methods.base import load_methods

        load_methods(self.plugin)
        settings = make_settings(self.host, tuple(file.resolve() for file in self.plugin), self.runs)
        app = make_app(settings)
        try:
            listener = socket.create_server((self.host, self.port), family=_family(self.host))
        except OSError as error:
            raise InputError(
                f"cannot listen on {self.host}:{self.port}: {error.strerror or error}; choose another --port"
            ) from None
        address = f"http://{_bracketed(self.host)}:{listener.getsockname()[1]}/"
        address += f"?token={settings.token}" if settings.token else ""
        print(address, flush=True)
        if not self.quiet:
            webbrowser.open(address)
        config = uvicorn.Config(
            app, log_level="warning", ws_max_size=MOST_BYTES, timeout_graceful_shutdown=3, server_header=False
        )
        uvicorn.Server(config).run(sockets=[listener])
        return 0


def _family(host: str) -> int:
    import socket

    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
