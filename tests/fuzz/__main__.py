"""Fuzz for some minutes: python -m tests.fuzz --minutes 60 (or make fuzz MINUTES=60)."""

import argparse
import logging
import sys
import time
import traceback
from collections import Counter
from itertools import count

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.fuzz.estimator import EstimatorMachine
from tests.fuzz.targets import TARGETS
from tests.last_runs import record

# How many examples of a target are tried before the next one's turn.
TURN = 100


def main() -> None:
    """Go round the targets until the time is up, and exit with 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--only", choices=[*TARGETS, "estimator"], default=None)
    parser.add_argument("--record", action="store_true", help="for docs/promises.md")
    given = parser.parse_args()
    logging.disable()
    deadline = time.monotonic() + 60 * given.minutes
    tried: Counter[str] = Counter()
    found: set[str] = set()
    limits = settings(
        max_examples=TURN,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    targets = {name: limits(target) for name, target in TARGETS.items()}
    few = settings(limits, max_examples=TURN // 20, stateful_step_count=12)
    for turn in count():
        for name in [given.only] if given.only else [*TARGETS, "estimator"]:
            if time.monotonic() > deadline and turn:
                said = _said(tried, found)
                print(*said, sep="\n")
                if given.record:
                    record("fuzz", f"python -m tests.fuzz --minutes {given.minutes:g}", said)
                sys.exit(1 if found else 0)
            if name in found:
                continue
            try:
                if name == "estimator":
                    run_state_machine_as_test(EstimatorMachine, settings=few)
                else:
                    targets[name]()
            except Exception:
                found.add(name)
                print(f"{name}:\n{traceback.format_exc()}", flush=True)
            tried[name] += few.max_examples if name == "estimator" else TURN


def _said(tried: Counter[str], found: set[str]) -> list[str]:
    return [
        f"{name}: {n:,} examples, {'a crash' if name in found else 'no crash'}"
        for name, n in tried.items()
    ]


if __name__ == "__main__":
    main()
