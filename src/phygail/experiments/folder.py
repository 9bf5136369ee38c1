"""The folder of a comparison: what it holds, whether a run may resume in it, and where it was made.

Rows are checked on resume: a row that was changed by hand would otherwise stay in the results for good. Columns of the
flight itself (steps of a success, distance, contacts) can only be checked by flying again; here their limits are
checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from phygail import __version__
from phygail.config import CONTACT_M, InputError, Physics, physics_values
from phygail.experiments.failures import Failures
from phygail.experiments.grid import CaseList, Grid
from phygail.experiments.rows import (
    CURVE,
    FURTHER,
    LOST,
    TIMEOUT,
    Case,
    Job,
    Journal,
    Row,
    case_row,
    key_of,
    make_case,
    read_rows,
    save_rows,
    time_of,
)
from phygail.files import DRAFT, make_folder, read_json, write_text
from phygail.sensing.imperfect import Sensing
from phygail.swarm.failures import KINDS
from phygail.swarm.layout import damage_count
from phygail.swarm.scenario import Scenario, scenario_to_json

MOST_DRAWN = 20  # cases whose subnets and bound are computed again: about 20 ms each
# Columns that the flight decides; `case_row` knows all others before the flight.
_FLOWN = ("converged", "steps", "time_s", "contact_events_per_uav", "contact_rate_raw", "contact_rate_capped",
          "distance_m_per_uav", "max_speed_mps", "first_action_ms", "solve_s", "flag", "version", *CURVE)  # fmt: skip

Judge = Callable[[Row], str]  # what is wrong with a row; empty if nothing is


def machine() -> dict[str, Any]:
    """Where a run was made: processor, cores, system, Python, and how busy it was."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def make_judge(job: Job) -> Judge:
    """A judge of the rows of a job; rows of other cases and methods pass.

    The judge draws the first `MOST_DRAWN` cases of a grid again; of the others it checks what their id says.
    """
    numbers = {name: number for number, name in enumerate(job.cases.ids())}
    cases: dict[int, Case] = {}

    def judge(row: Row) -> str:
        number = numbers.get(row["scenario"])
        if number is None or row["method"] not in job.methods:
            return ""
        if number not in cases and len(cases) < MOST_DRAWN:
            cases[number] = make_case(job.cases.scenario(number))
        case = cases.get(number)
        expected = _cell_facts(job, number) if case is None else _facts(case, row["method"], job)
        return _difference(row, expected) or _beyond(row) or ("" if case is None else _off_budget(row, case))

    return judge


def _facts(case: Case, method: str, job: Job) -> dict[str, Any]:
    """All that is known of a row before its flight."""
    known = case_row(case, method, safety=job.safety, policy=job.policy, sensing=job.sensing)
    return {name: value for name, value in known.items() if name not in _FLOWN}


def _cell_facts(job: Job, number: int) -> dict[str, Any]:
    """What is known of a case without drawing it."""
    if isinstance(job.cases, Grid):
        uavs, ratio, _ = job.cases.cell(number)
        damaged, drawn = damage_count(uavs, ratio), {"seed": job.cases.seed}
    else:
        scenario = job.cases.scenario(number)
        uavs, damaged, drawn = scenario.uavs, len(scenario.damaged), {}
    settings = {"safety": "on" if job.safety else "off"}
    return {"uavs": uavs, "damaged": damaged, "alive": uavs - damaged, **drawn, **settings}


def _difference(row: Row, expected: dict[str, Any]) -> str:
    for name, value in expected.items():
        if row[name] != value:
            return f"{name} is {row[name]}, its case says {value}"
    return ""


def _beyond(row: Row) -> str:
    """Limits that hold for every flight."""
    if row["converged"] not in (0, 1):
        return f"converged is {row['converged']}, it can be 0 or 1"
    if row["steps"] is None or row["steps"] < (row["bound_steps"] or 0):
        return f"steps is {row['steps']}, less than the bound of {row['bound_steps']}"
    return ""


def _off_budget(row: Row, case: Case) -> str:
    """Check a row against its budget and the length of a step."""
    budget = case.scenario.budget_steps
    if row["steps"] > budget or (not row["converged"] and row["steps"] != budget):
        return f"steps is {row['steps']}, its case has a budget of {budget}"
    time_s = time_of(row["steps"], case.scenario)
    return "" if row["time_s"] == time_s else f"time_s is {row['time_s']}, {row['steps']} steps take {time_s}"


try:
    import fcntl
except ImportError:  # no such locks on this system: the user must not start two runs at once
    fcntl = None  # type: ignore[assignment]

# What a record leaves out: perfect sensing, and radio and vehicle in folders that are older than these keys.
_IMPLIED: dict[str, Any] = {**physics_values([Physics()]), **FURTHER}


def resolved_config(job: Job) -> dict[str, Any]:
    """All that decides the rows. Files count by their content: a moved file is the same, a changed one is not."""
    return {
        **_describe_cases(job),
        "methods": sorted(job.methods),
        "safety": "on" if job.safety else "off",
        "policy": digest(job.policy.read_bytes()) if job.policy else None,
        "plugins": sorted(digest(file.read_bytes()) for file in job.files),
        **describe_sensing(job.sensing),
    }


def describe_sensing(sensing: Sensing) -> dict[str, float]:
    """Noise, delay and bias; perfect ones are left out, as in folders that are older than these keys."""
    bias = {"bias_m": float(sensing.bias_m)} if sensing.bias_m else {}
    if sensing.perfect:
        return {}
    return {"noise_m": float(sensing.sigma_m), "delay_steps": sensing.delay_steps} | bias


def _describe_cases(job: Job) -> dict[str, Any]:
    cases = job.cases
    if isinstance(cases, Failures):
        return cases.describe()
    if isinstance(cases, Grid):
        source = {"uavs": list(cases.uavs), "damage": list(cases.damage), "cases": cases.cases, "seed": cases.seed}
        return source | physics_values([cases.physics]) | ({"world": cases.world} if cases.world else {})
    assert isinstance(cases, CaseList), "a folder is flown from a grid or from given scenarios"
    source = {"scenarios": len(cases.given), "content": content_digest(cases.given)}
    return source | physics_values(s.physics for s in cases.given)


def content_digest(scenarios: Iterable[Scenario]) -> str:
    """What run.json calls the content of given scenarios.

    The usual contact distance is left out, as in records that are older than it: the same file has the same digest. The
    seed is beside the entry.
    """

    def told(scenario: Scenario) -> dict[str, Any]:
        entry = scenario_to_json(scenario)
        return {key: entry[key] for key in entry if key != "seed" and (key, entry[key]) != ("contact_m", CONTACT_M)}

    return digest(json.dumps([[told(s), s.seed] for s in scenarios]).encode())


def digest(content: bytes) -> str:
    """The SHA-256 of a file, as run.json holds it."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


class RunFolder:
    """DIR/run.json, DIR/rows.csv and what is made from them.

    Args:
        path: DIR.
        config: What decides the rows; a folder holds one.
    """

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self.config = config
        self.rows_path = path / "rows.csv"
        self._record = path / "run.json"

    def check(self) -> dict[str, Any] | None:
        """The record of an earlier run of the same config, None in a fresh folder; another config is refused."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"cannot write to {self.path}: it is a file; name a folder")
        if not self._record.exists():
            if self.rows_path.exists():
                raise InputError(f"{self.path} holds rows.csv but no run.json: choose another folder")
            return None
        earlier = read_json(self._record)
        if not self._is_record(earlier):
            raise InputError(f"{self._record} is not the record of a comparison: choose another folder")
        version, config = earlier["version"], earlier["config"]
        if version != __version__:
            raise InputError(f"{self.path} was made by phygail {version}, this is {__version__}: choose another folder")
        for key in self.decisive(config):
            before, now = (known.get(key, _IMPLIED.get(key)) for known in (config, self.config))
            if before != now:
                raise InputError(
                    f"{self.path} holds another run ({key} was {_shorten(before)}, now {_shorten(now)}): "
                    "choose another folder or repeat the command in its run.json"
                )
        return dict(earlier)

    def _is_record(self, content: Any) -> bool:
        """Whether run.json has the form that `record` gives it."""
        if not isinstance(content, dict) or not isinstance(content.get("version"), str):
            return False
        return isinstance(content.get("config"), dict) and isinstance(content.get("run", {}), dict)

    def decisive(self, earlier: dict[str, Any]) -> Iterable[str]:
        """The settings that must be equal for a run to go on: all of them."""
        return dict.fromkeys([*self.config, *earlier])

    def record(self, about: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
        """What run.json says; `earlier` is what it said before."""
        return {"version": __version__, "config": self.config, "run": about}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder and keep other runs out of it; the lock ends with the process, however that ends."""
        handle = self._open()
        try:
            yield
        finally:
            os.close(handle)

    def _open(self) -> int:
        """A locked handle of the folder, which a refused run may have removed before we had the lock."""
        while True:
            make_folder(self.path)
            handle = os.open(self.path, os.O_RDONLY)
            try:
                self._lock(handle)
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(handle), self.path.stat()):
                        return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)

    def _lock(self, handle: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another run is writing to {self.path}: wait for it or choose another folder") from None

    def resume(self, about: dict[str, Any], judge: Judge | None = None) -> list[Row]:
        """The finished rows; afterward rows.csv holds exactly these and run.json says what runs now.

        Args:
            about: What may differ between a run and its resumption: command, workers, timeout.
            judge: Says what is wrong with a row; a row with a fault is refused and nothing changes.
        """
        earlier = self.check()
        for draft in self.path.glob(f"{DRAFT}*"):  # left by a killed run; no other process writes here
            draft.unlink(missing_ok=True)
        rows = read_rows(self.rows_path) if self.rows_path.exists() else []
        self._check_rows(rows, judge or (lambda row: ""))
        again = {LOST}  # with more free memory the episode may fly
        if earlier and earlier.get("run", {}).get("timeout_s") != about["timeout_s"]:
            again.add(TIMEOUT)  # with another limit the episodes that met the old one are flown again
        rows = list({key_of(row): row for row in rows if again.isdisjoint(row["flag"].split(";"))}.values())
        if earlier:  # before the record: if it names another timeout, the rows that met the old one are removed already
            self.save(rows)
        write_text(self._record, json.dumps(self.record(about, earlier), indent=2) + "\n")
        if not earlier:
            self.save(rows)
        return rows

    def _check_rows(self, rows: list[Row], judge: Judge) -> None:
        for number, row in enumerate(rows, start=2):
            if row["version"] != __version__:
                raise InputError(
                    f"{self.rows_path} holds rows of phygail {row['version']}, this is {__version__}: "
                    "choose another folder"
                )
            if fault := judge(row):
                raise InputError(f"{self.rows_path}, row {number}: {fault}; delete this row and run again")

    @property
    def measured(self) -> bool:
        """Whether its rows hold the further columns of failures of single UAVs."""
        return self.config.get("source") in KINDS

    def save(self, rows: Iterable[Row]) -> None:
        """Replace rows.csv by these rows, sorted."""
        save_rows(self.rows_path, rows, measured=self.measured)

    def journal(self) -> Journal:
        """rows.csv, to append to."""
        return Journal(self.rows_path, measured=self.measured)

    def log_error(self, row: Row, details: str) -> None:
        """Append what a method raised to errors.log."""
        path = self.path / "errors.log"
        try:
            with path.open("a", encoding="utf-8") as log:
                log.write(f"{row['scenario']} {row['method']} {row['flag']}\n{details.rstrip()}\n\n")
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}; make room and run again") from None

    def discard(self) -> None:
        """Remove what a run that cannot go on has written; a folder with finished rows is kept.

        Call it while the folder is locked: then all that is there is ours.
        """
        if self.rows_path.exists() and read_rows(self.rows_path):
            return
        for name in ("run.json", "rows.csv", "errors.log"):
            (self.path / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def _shorten(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
