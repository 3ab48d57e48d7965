"""Work in a thread: reports, results, errors, cancelling."""

import pytest

from cptuning.app.background_job import BackgroundJob, CancelledError, TrainingProgressCallback
from cptuning.errors import CPTuningError


def test_the_last_report_is_always_seen():
    job = BackgroundJob(lambda job: [job.report(n / 10, f"{n}") for n in range(11)])
    assert [report.doing for report in job.run()][-1] == "10"


def test_an_error_reaches_whoever_listens():
    def work(job):
        raise CPTuningError("It is broken.")

    with pytest.raises(CPTuningError, match="It is broken"):
        list(BackgroundJob(work).run())


def endless(job):
    while True:
        job.report(0.5, "going on")


def test_a_cancelled_job_ends_at_its_next_report():
    job = BackgroundJob(endless)
    reports = job.run()
    next(reports)
    job.cancel()
    with pytest.raises(CancelledError, match="nothing is lost"):
        list(reports)


def test_a_job_nobody_listens_to_ends():
    job = BackgroundJob(endless)
    reports = job.run()
    next(reports)
    reports.close()  # It waits for the thread: an endless one would hang here.
    with pytest.raises(RuntimeError):
        _ = job.result


def test_several_trainings_are_one_bar():
    seen = []

    class Fake:
        def report(self, share, doing):
            seen.append((round(share, 2), doing))

    watch = TrainingProgressCallback(Fake(), trainings=2)
    for stage in ("fold 1 of 2", "training"):
        watch.on_start(stage, 0, 4)
        watch.on_step(2, {})
        watch.on_end(4)
    assert seen == [
        (0.0, "Checking (1 of 2): step 0 of 4"),
        (0.25, "Checking (1 of 2): step 2 of 4"),
        (0.5, "Training: step 0 of 4"),
        (0.75, "Training: step 2 of 4"),
    ]
