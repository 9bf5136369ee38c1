"""What tests of several rooms share."""

import pytest

from phygail.evaluation.flight import case_reader, fly_task, prepare


class Here:
    """An engine without processes: their start would take longer than short flights."""

    def start(self, job):
        prepare(job)
        self.job, self.read_case = job, case_reader(job)

    def run(self, tasks):
        for task in tasks:
            yield [fly_task(self.job, task, self.read_case)]

    def stop(self):
        pass


@pytest.fixture(scope="session")
def here():
    """Flies in the process of the test."""
    return Here()
