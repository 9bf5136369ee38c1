"""The entry point: `phygail COMMAND`. Bad input is one line on stderr and exit code 2."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Protocol

import tyro

from phygail import __version__
from phygail.cli.compare import Benchmark, Compare, Reproduce
from phygail.cli.inspect import Inspect, Methods, Scenarios
from phygail.cli.options import WorldFlags, log_to_stderr, note
from phygail.cli.recover import Play, Recover, Serve
from phygail.cli.soak import Soak
from phygail.cli.train import Experts, Export, Train, TrainPhygail, TrainPhygailPlus, TrainReachEvolved
from phygail.config import EndedFromOutside, InputError

DESCRIPTION = """Get a shattered UAV swarm back into one network.

For example:
  phygail recover --uavs 200 --damage 0.5 --picture recovery.png
  phygail compare --uavs 100 --damage 0.25,0.5 --cases 10 --methods sidr,center-fly --out results/first

Every command takes --traceback: where an error comes from, for those who write methods.
"""

BAD_INPUT = 2
INTERRUPTED = 130
TRACEBACK = "--traceback"
COMPLETION = ("--tyro-print-completion", "--tyro-write-completion")  # of the shell


class Command(Protocol):
    """A parsed command; `run` gives the exit code."""

    def run(self) -> int:
        """Do it."""


COMMANDS: dict[str, type[Command]] = {
    "recover": Recover,
    "compare": Compare,
    "benchmark": Benchmark,
    "reproduce": Reproduce,
    "scenarios": Scenarios,
    "inspect": Inspect,
    "experts": Experts,
    "train": Train,
    "export": Export,
    "methods": Methods,
    "soak": Soak,
    "play": Play,
    "serve": Serve,
}


# Commands of two words, with flags of their own.
SPECIAL: dict[tuple[str, str], type[Command]] = {
    ("train", "phygail"): TrainPhygail,
    ("train", "phygail-paper"): TrainPhygail,
    ("train", "phygail-taught"): TrainPhygail,
    ("train", "phygail-plus"): TrainPhygailPlus,
    ("train", "reach-evolved"): TrainReachEvolved,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 (episodes failed with an error), 2 (bad input) or 130 (interrupted)."""
    given = list(sys.argv[1:] if argv is None else argv)
    words = [word for word in given if word != TRACEBACK] or ["--help"]
    if argv is None:  # the process is ours: on SIGTERM it stops its workers and removes its drafts
        signal.signal(signal.SIGTERM, _end)
    if words == ["--version"]:
        print(f"phygail {__version__}")
        return 0
    _stand_in_for_closed_streams()
    whole = TRACEBACK in given
    log_to_stderr(details=whole)
    command: Command | None = None
    try:
        command = parse(words)
        code = command.run()
        sys.stdout.flush()
        return code
    except InputError as error:
        if whole:
            traceback.print_exc()
        note(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        note(f"interrupted{how_to_resume(command)}")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has closed it
        _drop_stdout()
        return 1
    except OSError as error:  # a full disk, a name too long: refused by the machine, not an error of the program
        _drop_stdout()
        note(f"{error.filename or 'the output'}: {error.strerror or error}")
        return BAD_INPUT


def how_to_resume(command: Command | None) -> str:
    """The words that say how to go on after an interruption; empty where nothing was kept."""
    if isinstance(command, Compare | Benchmark | Experts | Reproduce):
        return "; run the same command again to resume"
    if isinstance(command, TrainReachEvolved | TrainPhygail):
        folder = command.resume or command.out
        if folder is None or not (folder / "config.json").exists():
            return " before there was anything to resume"
        name = next(words[1] for words, kind in SPECIAL.items() if type(command) is kind)
        return f"; resume with phygail train {name} --resume {folder}"
    return "; the best weights so far are kept" if isinstance(command, Train) else ""


def _end(number: int, _: object) -> None:
    raise EndedFromOutside(128 + number)


def _stand_in_for_closed_streams() -> None:
    """Open /dev/null for a stream that the shell has closed: Python then has none."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - stays open to the end


def _drop_stdout() -> None:
    """Redirect stdout to /dev/null, so that Python does not fail again when it closes it."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parse(words: list[str]) -> Command:
    """The command that the words describe; help and errors of the command line end the process here."""
    if words[0] in ("train", "experts"):
        _refuse_worlds(words)
    special = SPECIAL.get((words[0], words[1])) if len(words) > 1 else None
    if special is not None:
        return tyro.cli(special, prog=f"phygail {words[0]} {words[1]}", args=words[2:])
    if words[0] in COMMANDS:
        return tyro.cli(COMMANDS[words[0]], prog=f"phygail {words[0]}", args=words[1:])
    if words[0] in COMPLETION:  # with all flags of all commands
        tyro.extras.subcommand_cli_from_dict(dict(COMMANDS), prog="phygail", description=DESCRIPTION, args=words)
    stubs = {name: _stub(command) for name, command in COMMANDS.items()}
    tyro.extras.subcommand_cli_from_dict(stubs, prog="phygail", description=DESCRIPTION, args=words)
    raise AssertionError("unreachable: the first word is no command")


def _refuse_worlds(words: list[str]) -> None:
    """Training knows the plain world only, and says so rather than that a flag is unknown."""
    flags = {f"--{field.name.replace('_', '-')}" for field in fields(WorldFlags)}
    for word in words:
        if word.partition("=")[0] in flags:
            raise InputError(f"{word.partition('=')[0]}: training flies the plain world; leave the flag out")


def _stub(command: type[Command]) -> Callable[[], None]:
    """Stands for a command in the list of commands, which shows the first line of its help only."""

    def stub() -> None: ...

    stub.__doc__ = (command.__doc__ or "").splitlines()[0]
    return stub


if __name__ == "__main__":
    sys.exit(main())
