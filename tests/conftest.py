"""What tests of several rooms share."""

import pytest


class Here:
    """An engine without processes: their start would take longer than short flights."""

    def start(self, job):
        from phygail.evaluation.flight import case_reader, prepare  # here: most tests need none of it

        prepare(job)
        self.job, self.read_case = job, case_reader(job)

    def run(self, tasks):
        from phygail.evaluation.flight import fly_task

        for task in tasks:
            yield [fly_task(self.job, task, self.read_case)]

    def stop(self):
        pass


@pytest.fixture(scope="session")
def here():
    """Flies in the process of the test."""
    return Here()
