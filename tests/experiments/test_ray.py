"""The same sweep on a small local Ray cluster, also when one of its workers is killed."""

import os
import signal
from threading import Event, Thread

from tests.experiments.conftest import keys_of
from tests.ray_cluster import workers


def test_two_workers_share_a_sweep_and_one_that_is_killed_is_replaced(
    ray_cluster, run, request_for
):
    folder, killed, over = request_for().output, [], Event()

    def kill_one():
        while not killed and not over.wait(0.02):
            busy = workers("work_on_request")
            if keys_of(folder) and busy:  # the other one may still be starting
                os.kill(busy[0], signal.SIGKILL)
                killed.append(True)

    killer = Thread(target=kill_one)
    killer.start()
    _, files = run(runner="ray", workers=2, seeds=(13, 21), methods=("cp-tuning",), steps=20)
    over.set()
    killer.join()
    assert killed
    assert len(keys_of(folder)) == 2 * 2
    assert len(files["main.csv"].read_text().splitlines()) == 1 + 2
