"""Trainings take turns, in the order in which they came."""

from threading import Event, Thread

import pytest

from cptuning.app.background_job import BackgroundJob, CancelledError
from cptuning.app.training_queue import TrainingQueue


@pytest.fixture
def running():
    """A queue in which a job runs until the event is set, and the reports of that job."""
    queue, may_end = TrainingQueue(), Event()

    def work(job):
        job.report(0.5, "working")
        may_end.wait()
        return True

    reports = queue.run(BackgroundJob(work))
    next(reports)
    yield queue, may_end, reports
    may_end.set()
    list(reports)


def test_the_next_one_waits_and_is_told_how_long(running):
    queue, may_end, reports = running
    job = BackgroundJob(lambda job: [job.report(1.0, "mine")])
    mine = queue.run(job, patience=0.01)
    told = next(mine)
    assert told.doing == "Another training is running, yours is next"
    assert told.is_waiting
    assert told.seconds_left >= 0
    third = queue.run(BackgroundJob(print), patience=0.01)
    assert next(third).doing == "2 trainings come before yours"
    third.close()
    may_end.set()
    end = Thread(target=lambda: list(reports))
    end.start()
    assert [report.doing for report in mine][-1] == "mine"
    end.join()


def test_one_that_waits_can_be_cancelled(running):
    queue, _, _ = running
    job = BackgroundJob(print)
    mine = queue.run(job, patience=0.01)
    next(mine)
    job.cancel()
    with pytest.raises(CancelledError):
        list(mine)


def test_one_that_fails_lets_the_next_one_run():
    queue = TrainingQueue()

    def fail(job):
        raise RuntimeError("for the test")

    with pytest.raises(RuntimeError):
        list(queue.run(BackgroundJob(fail)))
    job = BackgroundJob(lambda job: 42)
    assert list(queue.run(job)) == []
    assert job.result == 42
