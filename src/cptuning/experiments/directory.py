"""A result directory: one small JSON file per training run, and a lock for each."""

import fcntl
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from cptuning.errors import CPTuningError
from cptuning.experiments.cells import Cell
from cptuning.experiments.run_keys import current_form
from cptuning.files.atomic import write_whole

Record = dict[str, Any]
_PLAN = "plan.json"
_PACKED = "records.jsonl.gz"


@dataclass(frozen=True)
class Outcome:
    """What came out of a cell: the chosen run and its test score."""

    cell: Cell
    run: Record
    test: Record


@dataclass
class ResultDirectory:
    """What a result directory holds, read when it is needed.

    ``runs/KEY.json`` is a training run with its dev score; ``tests/KEY.json`` is the test score of
    a run that dev chose, and ``predictions/KEY.txt`` its answers, one per line. A key is the hash
    of the run's full configuration, so a run whose file exists is never repeated. ``plan.json``
    says which runs belong to which cell of which table. A published directory has its runs and
    tests in one file, ``records.jsonl.gz``, and no predictions.
    """

    folder: Path

    def __post_init__(self) -> None:
        self._seen: dict[tuple[str, str], Record] = {}

    def run(self, key: str) -> Record | None:
        """The record of a training run, once it is finished."""
        return self._read("runs", key)

    def test(self, key: str) -> Record | None:
        """The test score of a run that was chosen."""
        return self._read("tests", key)

    def chosen(self, cell: Cell) -> Record | None:
        """The best run on dev, the first of equally good ones; None if every run failed."""
        runs = [run for run in map(self.run, cell.keys) if run and "dev" in run]
        return max(runs, key=dev_score, default=None)

    def is_done(self, cell: Cell) -> bool:
        """Whether all candidates are trained and the chosen one is tested."""
        if not all(self.run(key) for key in cell.keys):
            return False
        chosen = self.chosen(cell)
        if chosen is None:  # Every candidate failed, and says why.
            return True
        pictured = not cell.keeps_embeddings or self.embeddings(chosen["key"]).is_file()
        return self.test(chosen["key"]) is not None and pictured

    def outcomes(self) -> list[Outcome]:
        """Those of all cells that are done, except where every candidate failed."""
        found = []
        for cell in self.planned():
            run = self.chosen(cell) if self.is_done(cell) else None
            test = self.test(run["key"]) if run else None
            if run and test:
                found.append(Outcome(cell, run, test))
        return found

    def embeddings(self, key: str) -> Path:
        """The file with the embeddings of a chosen run, for a picture."""
        return self.folder / "embeddings" / f"{key}.npz"

    def write(self, kind: str, key: str, record: Record) -> None:
        """Add a run or a test score; the file appears as a whole or not at all."""
        path = self._path(kind, key)
        make_folder(path.parent)
        write_whole(path, json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True) + "\n")

    def finished(self) -> set[str]:
        """The keys of all runs that are finished by now."""
        loose = self.folder / "runs"
        names = {path.stem for path in loose.glob("*.json")} if loose.is_dir() else set()
        return names | {key for kind, key in self._packed if kind == "runs"}

    def write_predictions(self, key: str, answers: list[str]) -> None:
        """Keep what a chosen run answered to the test examples."""
        make_folder(self.folder / "predictions")
        write_whole(self.folder / "predictions" / f"{key}.txt", "\n".join(answers) + "\n")

    @contextmanager
    def lock(self, name: str) -> Iterator[bool]:
        """Try to get a lock; give whether it worked. The kernel frees it if the process dies."""
        make_folder(self.folder / "locks")
        with (self.folder / "locks" / name).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def add_to_plan(self, cells: list[Cell], backbone: Record) -> None:
        """Add cells to those that the directory has already.

        A cell replaces an earlier one in its place, but a fast one never replaces a whole one. A
        directory is about one backbone.
        """
        make_folder(self.folder / "locks")
        with (self.folder / "locks" / "plan").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            earlier = {cell.place: cell for cell in self.planned()} if self._has_plan else {}
            if earlier and self.backbone["weights"] != backbone["weights"]:
                mine, other = (
                    f"{b['name']}, weights {b['weights'][:8]}" for b in (backbone, self.backbone)
                )
                raise CPTuningError(
                    f"{self.folder} holds results of another backbone ({other}) than this one "
                    f"({mine}): choose another --output."
                )
            smaller = [c for c in cells if c.fast and c.place in earlier]
            if any(not earlier[cell.place].fast for cell in smaller):
                raise CPTuningError(
                    f"{self.folder} holds the whole of this study: choose another --output for "
                    "the fast version."
                )
            merged = earlier | {cell.place: cell for cell in cells}
            plan = {"backbone": backbone, "cells": [asdict(c) for c in merged.values()]}
            write_whole(self.folder / _PLAN, json.dumps(plan, ensure_ascii=False) + "\n")

    def planned(self) -> list[Cell]:
        """All cells of the directory."""
        return [Cell.from_json(cell) for cell in self._plan()["cells"]]

    @property
    def backbone(self) -> Record:
        """The backbone that all its runs started from."""
        return dict(self._plan()["backbone"])

    @property
    def _has_plan(self) -> bool:
        return (self.folder / _PLAN).is_file()

    def _plan(self) -> Record:
        if not self._has_plan:
            raise CPTuningError(
                f"{self.folder} holds no results: name a folder that `cptuning reproduce` wrote."
            )
        return _load(self.folder / _PLAN)

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / f"{key}.json"

    def _read(self, kind: str, key: str) -> Record | None:
        """Read a record, once: it never changes."""
        if (kind, key) not in self._seen:
            path = self._path(kind, key)
            if not path.is_file():
                return self._packed.get((kind, key))
            self._seen[kind, key] = _current(_load(path))
        return self._seen[kind, key]

    @cached_property
    def _packed(self) -> dict[tuple[str, str], Record]:
        path = self.folder / _PACKED
        if not path.is_file():
            return {}
        try:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                return {
                    (kind, record["key"]): _current(record)
                    for kind, record in map(json.loads, lines)
                }
        except (OSError, EOFError, ValueError, KeyError) as error:
            raise CPTuningError(f"{path} is damaged ({error}): publish it again.") from error

    def publish(self, folder: Path) -> "ResultDirectory":
        """Write the plan, the runs and the tests to another folder, in two small files.

        The embeddings that pictures are drawn from are copied too; predictions are not, nor is
        anything that is no longer planned.
        """
        make_folder(folder)
        planned = {key for cell in self.planned() for key in cell.keys}
        found = [
            [kind, record]
            for kind, read in (("runs", self.run), ("tests", self.test))
            for key in sorted(planned)
            if (record := read(key))
        ]
        lines = "".join(json.dumps(one, ensure_ascii=False, sort_keys=True) + "\n" for one in found)
        # No time stamp, so that the same records make the same file.
        write_whole(folder / _PACKED, gzip.compress(lines.encode("utf-8"), mtime=0))
        write_whole(folder / _PLAN, json.dumps(self._plan(), ensure_ascii=False) + "\n")
        public = ResultDirectory(folder)
        drawn = {key for cell in self.planned() if cell.keeps_embeddings for key in cell.keys}
        for path in (self.folder / "embeddings").glob("*.npz"):
            if path.stem in drawn:
                make_folder(folder / "embeddings")
                write_whole(public.embeddings(path.stem), path.read_bytes())
        for path in (folder / "embeddings").glob("*.npz"):
            if path.stem not in drawn:
                path.unlink()
        return public


def make_folder(folder: Path) -> None:
    """Make a folder, or say in one sentence why that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CPTuningError(f"{folder} can't be created: {error.strerror}.") from error


def dev_score(run: Record) -> tuple[float, float]:
    """What dev chooses by: accuracy, then log-loss. A failed run is worse than any other.

    >>> dev_score({"dev": {"accuracy": 0.8, "log_loss": 0.4}}) > dev_score({"failed": "no words"})
    True
    """
    if "dev" not in run:
        return -inf, -inf
    return run["dev"]["accuracy"], -run["dev"]["log_loss"]


def _current(record: Record) -> Record:
    """A record, however old, with its settings as they are called today."""
    if "configuration" not in record:  # It is a test score.
        return record
    configuration = record["configuration"]
    settings = current_form(configuration["settings"])
    return record | {"configuration": configuration | {"settings": settings}}


def _load(path: Path) -> Record:
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise CPTuningError(f"{path} is damaged ({error}): delete it and run again.") from error
