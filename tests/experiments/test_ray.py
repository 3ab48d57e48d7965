"""The same sweep on a small local Ray cluster, also when one of its workers is killed."""

import os
import signal
import time
from pathlib import Path
from threading import Thread

import pytest
from tests.experiments.conftest import keys_of

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster():
    # Nothing is sent, and no token is written into the home folder.
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def workers():
    """The processes of this cluster that work for us."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "cmdline").read_bytes()
            if name.startswith(b"ray::work_on_request") and _is_ours(int(folder.name)):
                found.append(int(folder.name))
        except OSError:  # It has just ended.
            continue
    return found


def _is_ours(pid):
    while pid > 1:
        if pid == os.getpid():
            return True
        status = (Path("/proc") / str(pid) / "status").read_text()
        pid = int(status.partition("PPid:")[2].split()[0])
    return False


def test_two_workers_share_a_sweep_and_one_that_is_killed_is_replaced(cluster, run, request_for):
    folder, killed = request_for().output, []

    def kill_one():
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and not killed:
            if len(keys_of(folder)) >= 2 and len(workers()) == 2:
                os.kill(workers()[0], signal.SIGKILL)
                killed.append(True)
            time.sleep(0.02)

    killer = Thread(target=kill_one)
    killer.start()
    _, files = run(
        runner="ray", workers=2, seeds=(13, 21), methods=("cp-tuning",), steps=60, fast=False
    )
    killer.join()
    assert killed
    assert len(keys_of(folder)) == 24
    assert len(files["main.csv"].read_text().splitlines()) == 1 + 2
