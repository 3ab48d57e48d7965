"""Mutation testing: python -m tests.mutants --sample 300 (or make mutants SAMPLE=300).

In a copy of the repository, one place of the sources after another is changed, and the tests that
belong to it are run: they must fail. The places are a random sample of those in losses/,
prompting/, inference/, data/ and storage/. What was found is written line by line, so that the same
command goes on where it was stopped; with another seed or other sources it begins anew. Whoever
survives is listed, with the reason if ``survivors.toml`` gives one.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.mutants import forked
from tests.mutants.groups import modules, stages
from tests.mutants.sites import SOURCES, Mutant, sample
from tests.standstill import ROOT

RECORDS = Path(__file__).with_name("records.jsonl")
# How much longer than on the sources as they are, plus what a start takes.
TIMES_LONGER, MORE_SECONDS = 4.0, 20.0


class Laboratory:
    """A copy of the repository, its tests, and how long they take there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._usual: dict[tuple[str, ...], float] = {}

    def verdict(self, mutant: Mutant, chosen: slice) -> str:
        """What became of a mutant in some stages: "killed", "killed by time" or "survived"."""
        place = self.root / SOURCES / mutant.module
        whole = place.read_text("utf-8")
        changed = mutant.code(self.root)
        for tests in stages(self.root, mutant.module)[chosen]:
            usual = self._seconds(tests)
            place.write_text(changed, "utf-8")
            try:
                passed = forked.passes(tests, self.root, TIMES_LONGER * usual + MORE_SECONDS)
            finally:
                place.write_text(whole, "utf-8")
            if not passed:
                return "killed" if passed is False else "killed by time"
        return "survived"

    def _seconds(self, tests: list[str]) -> float:
        """How long they take without a mutant; they pass."""
        if tuple(tests) not in self._usual:
            began = _children_seconds()
            if not forked.passes(tests, self.root, 3600):
                sys.exit(f"Without a mutant: {forked.said_by(self.root).read_text()[-5000:]}")
            self._usual[tuple(tests)] = _children_seconds() - began
        return self._usual[tuple(tests)]


def _children_seconds() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def copy_of_the_repository(to: Path) -> Path:
    """All files that git knows or would take, as they are."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    return to


def known(records: Path) -> dict[str, dict[str, Any]]:
    """What was found before, by mutant."""
    if not records.exists():
        return {}
    return {row["id"]: row for row in map(json.loads, records.read_text("utf-8").splitlines())}


def identity(root: Path, mutant: Mutant) -> str:
    """A mutant's name, which is another one once its module has changed."""
    digest = hashlib.sha256((root / SOURCES / mutant.module).read_bytes()).hexdigest()[:12]
    return f"{mutant.module}@{digest}:{mutant.operator}:{mutant.occurrence}"


def main() -> None:
    """Test a sample of mutants, those first that were drawn first."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", default=[], help="such as losses/ or data/l")
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="when to pause")
    given = parser.parse_args()
    deadline = time.monotonic() + 60 * given.minutes
    with TemporaryDirectory() as folder:
        root = copy_of_the_repository(Path(folder, "repository"))
        mutants = sample(root, modules(root, given.only), given.sample, given.seed)
        found = known(given.records)
        forked.preload()
        laboratory = Laboratory(root)
        names = {identity(root, mutant): mutant for mutant in mutants}
        # The far tests take long: they are for those that the near ones left alive.
        for chosen, is_due in ((slice(2), "unknown"), (slice(2, None), "survived so far")):
            for name, mutant in names.items():
                row = found.get(name, {"verdict": "unknown"})
                if row["verdict"] != is_due or time.monotonic() > deadline:
                    continue
                verdict = laboratory.verdict(mutant, chosen)
                if verdict == "survived" and is_due == "unknown":
                    verdict = "survived so far"
                row = {"id": name, "module": mutant.module, "line": mutant.line}
                row |= {"change": mutant.change(root), "verdict": verdict}
                with given.records.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
                found[name] = row
                print(f"{verdict}: {name}", flush=True)
        report([found[name] for name in names if name in found])


def report(rows: list[dict[str, Any]]) -> None:
    """The share that was killed, and the survivors."""
    survivors = [row for row in rows if row["verdict"].startswith("survived")]
    for row in survivors:
        print(f"survived: {row['module']}, line {row['line']}: {' / '.join(row['change'])}")
    n = len(rows)
    print(f"{n} mutants, {n - len(survivors)} killed ({1 - len(survivors) / max(n, 1):.1%})")


if __name__ == "__main__":
    main()
