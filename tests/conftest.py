"""What tests of several rooms share, and how they are shared among processes."""

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@functools.cache
def unit(file: str) -> str:
    """The unit of work of a test file: its xdist_group, itself if its tests share what took time, else nothing.

    The controller of xdist sees names only, and pytest 9.2 no longer lets xdist write groups into them.
    """
    text = (ROOT / file).read_text(encoding="utf-8")
    group = re.search(r'^pytestmark = .*xdist_group\("(\w+)"\)', text, re.MULTILINE)
    if group:
        return group[1]
    return file if re.search(r'scope="module"|^@cache$|^@functools.cache$', text, re.MULTILINE) else ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Whole units, the largest first, then tests one by one: `pytest -n 2 --dist loadgroup`."""
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return unit(nodeid.partition("::")[0]) or nodeid

    return Units(config, log) if config.getvalue("dist") == "loadgroup" else None


class Here:
    """An engine without processes: their start would take longer than short flights."""

    def start(self, job):
        from phygail.experiments.rows import case_reader, prepare  # here: most tests need none of it

        prepare(job)
        self.job, self.read_case = job, case_reader(job)

    def run(self, tasks):
        from phygail.experiments.rows import fly_task

        for task in tasks:
            yield [fly_task(self.job, task, self.read_case)]

    def stop(self):
        pass


@pytest.fixture(scope="session")
def here():
    """Flies in the process of the test."""
    return Here()
