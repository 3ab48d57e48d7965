"""A handful of the kills; ``make kills RUNS=50`` does more of them."""

import subprocess
import sys

from tests.standstill import ROOT

QUICK = ("fit over an old model", "add")


def test_what_is_killed_and_given_again_ends_as_if_nothing_had_happened():
    words = [sys.executable, "-m", "tests.kills", "--runs", "2", "--seed", "1"]
    words += [word for name in QUICK for word in ("--only", name)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("all whole") == len(QUICK)
