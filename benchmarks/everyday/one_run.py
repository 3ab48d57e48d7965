"""One run of the everyday benchmark: not in __main__, which other processes can't import."""

import platform
from pathlib import Path

import numpy as np

from benchmarks.everyday.data import Task, load_task
from benchmarks.everyday.rows import Places, Row
from benchmarks.runs import Job
from cptuning.inference import auroc


def one_run(job: Job, places: Places) -> Job:
    """Fit one row on one task, and score it."""
    from sklearn.metrics import f1_score
    from threadpoolctl import threadpool_limits

    task = Task(job["set"], job["shots"], job["split"])
    data = load_task(task)
    with threadpool_limits(1):
        outcome = Row(job["row"], job["encoder"]).run(task, data, places)
    truth = data.test.labels
    oos_auroc = None
    if outcome.inside is not None and outcome.outside is not None:
        oos_auroc = round(auroc(outcome.inside, outcome.outside), 5)
    return {
        "accuracy": round(float(np.mean(np.array(outcome.answers) == np.array(truth))), 5),
        "macro_f1": round(float(f1_score(truth, outcome.answers, average="macro")), 5),
        "fit_seconds": round(outcome.fit_seconds, 3),
        "seconds_per_1000": round(1000 * outcome.predict_seconds / len(truth), 3),
        "oos_auroc": oos_auroc,
        "train_texts": len(data.train.labels),
        "test_texts": len(truth),
        "machine": processor(),
        **outcome.facts,
    }


def processor() -> str:
    """The name of this machine's processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
