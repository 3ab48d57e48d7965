"""SIGKILL at random moments: python -m tests.kills --runs 50 [--only add].

Each command is run once unbroken. Then, so many times, it is killed at a random moment, or at one
of its calls that write, and given again: it must finish, with the same result, and leave nothing
else. What stands under a final name after the kill is the old thing or the new one, whole.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.kills.processes import Running, preload
from tests.kills.scenarios import SCENARIOS, contents, copied, prepare
from tests.kills.servers import SERVERS
from tests.last_runs import record


class Trial:
    """A scenario in a folder, its unbroken result, and what the kills have found."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.scenario, self.root = name, SCENARIOS[name], root
        self.log = root / "log"
        self.start = root / "start"
        prepare(self.scenario, self.start, self.run)
        unbroken = copied(self.start, root / "unbroken")
        began = time.monotonic()
        assert self.run(self.scenario.words, unbroken) == 0, self.log.read_text()
        self.seconds = time.monotonic() - began
        self.calls = int(self.log.with_suffix(".calls").read_text())
        self.old = self.result(self.start)
        self.new = self.result(unbroken)
        self.names = {path.name for path in unbroken.iterdir()}

    def run(self, words: Sequence[str], folder: Path) -> int:
        """The exit code of a command that nobody kills."""
        return Running(words, folder, self.log).wait()

    def result(self, folder: Path) -> dict[str, bytes]:
        """What the command has written, as far as it is the same each time."""
        return contents(folder / self.scenario.result, self.scenario.compared)

    def is_whole(self, found: dict[str, bytes]) -> bool:
        """Whether what stands under its final name is the old thing or the new one."""
        if self.scenario.grows:
            return found.items() <= self.new.items()
        return found in (self.old, self.new, {})

    def kill_once(self, number: int, chance: random.Random) -> bool:
        """Kill the command, give it again, and compare; whether it was killed before its end."""
        folder = copied(self.start, self.root / f"killed {number}")
        words = self.scenario.words
        if number % 2:
            moment = chance.uniform(0, self.seconds)
            code = Running(words, folder, self.log).wait(moment)
            what = f"after {moment:.3f} s"
        else:
            call = chance.randint(1, self.calls)
            code = Running(words, folder, self.log, kill_at=call).wait()
            what = f"at call {call} of {self.calls}"
        place = folder / self.scenario.result
        _require(self.is_whole(self.result(folder)), self, what, "a partial result")
        if self.old:
            # Between two renames the old and the new one are in the workspace; `add` and any other
            # command that reads a model brings the new one back.
            there = place.exists() or any(folder.glob(f".{place.name}.*.unfinished"))
            _require(there, self, what, "the old result is gone")
        for workspace in folder.glob(".*.unfinished"):
            # What has no mark yet is removed by whoever comes a minute later.
            a_minute_ago = time.time() - 61
            os.utime(workspace, (a_minute_ago, a_minute_ago))
        again = self.run(words, folder)
        _require(again == 0, self, what, f"the second run ended with {again}")
        _require(self.result(folder) == self.new, self, what, "another result")
        left = sorted({path.name for path in folder.iterdir()} - self.names)
        _require(not left, self, what, f"left behind: {', '.join(left)}")
        return code != 0


def _require(truth: bool, trial: Trial, what: str, problem: str) -> None:
    if not truth:
        said = trial.log.read_text()[-2000:]
        sys.exit(f"{trial.name}, killed {what}: {problem}\n{said}")


def main() -> None:
    """Kill each command so many times."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--only", action="append", choices=[*SCENARIOS, *SERVERS])
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--record", action="store_true", help="for docs/promises.md")
    given = parser.parse_args()
    seed = random.randrange(2**32) if given.seed is None else given.seed
    chance = random.Random(seed)
    print(f"seed {seed}", flush=True)
    names = given.only or [*SCENARIOS, *SERVERS]
    needs_torch = any(SCENARIOS[name].needs_backbone for name in names if name in SCENARIOS)
    preload(needs_torch, with_page="app" in names)
    said = []
    for name in names:
        with TemporaryDirectory() as root:
            trial = SERVERS[name](Path(root)) if name in SERVERS else Trial(name, Path(root))
            killed = sum(trial.kill_once(number, chance) for number in range(given.runs))
        said.append(f"{name}: {given.runs} runs, {killed} killed before their end, all whole")
        print(said[-1], flush=True)
        if given.record:
            record("kills", f"python -m tests.kills --runs {given.runs} --seed {seed}", said)


if __name__ == "__main__":
    main()
