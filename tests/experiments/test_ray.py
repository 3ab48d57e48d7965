"""The same sweep on a small local Ray cluster, also when one of its workers is killed."""

import os
import signal
import time
from threading import Thread

from tests.experiments.conftest import keys_of
from tests.ray_cluster import workers


def test_two_workers_share_a_sweep_and_one_that_is_killed_is_replaced(
    ray_cluster, run, request_for
):
    folder, killed = request_for().output, []

    def kill_one():
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and not killed:
            busy = workers("work_on_request")
            if keys_of(folder) and len(busy) == 2:
                os.kill(busy[0], signal.SIGKILL)
                killed.append(True)
            time.sleep(0.02)

    killer = Thread(target=kill_one)
    killer.start()
    _, files = run(runner="ray", workers=2, seeds=(13, 21), methods=("cp-tuning",), steps=20)
    killer.join()
    assert killed
    assert len(keys_of(folder)) == 2 * 2
    assert len(files["main.csv"].read_text().splitlines()) == 1 + 2
