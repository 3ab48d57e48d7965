"""Data sets in the folders and files of LM-BFF (github.com/princeton-nlp/LM-BFF)."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cptuning.data.examples import LabelledData, as_examples
from cptuning.errors import CPTuningError

_SENTIMENT = {"0": "negative", "1": "positive"}
_ENTAILMENT = {"entailment": "entailment", "not_entailment": "not_entailment"}


@dataclass(frozen=True)
class _FolderLayout:
    """LM-BFF's names for the folder, the labels and, in a TSV file, the columns of a data set."""

    folder: str
    labels: dict[str, str]
    texts: tuple[str, ...] = ()  # If empty, it is a CSV file without header, the label first.
    label: str = "label"


LAYOUTS = {
    "SST-2": _FolderLayout("SST-2", _SENTIMENT, ("sentence",)),
    "MR": _FolderLayout("mr", _SENTIMENT),
    "CR": _FolderLayout("cr", _SENTIMENT),
    "MRPC": _FolderLayout(
        "MRPC",
        {"0": "not_equivalent", "1": "equivalent"},
        ("#1 String", "#2 String"),
        label="Quality",
    ),
    "QQP": _FolderLayout(
        "QQP",
        {"0": "not_duplicate", "1": "duplicate"},
        ("question1", "question2"),
        label="is_duplicate",
    ),
    "QNLI": _FolderLayout("QNLI", _ENTAILMENT, ("question", "sentence")),
    "RTE": _FolderLayout("RTE", _ENTAILMENT, ("sentence1", "sentence2")),
    "SUBJ": _FolderLayout("subj", {"0": "subjective", "1": "objective"}),
    "TREC": _FolderLayout(
        "trec",
        {
            "0": "description",
            "1": "entity",
            "2": "abbreviation",
            "3": "human",
            "4": "location",
            "5": "number",
        },
    ),
}


@dataclass(frozen=True)
class LMBFFFolder:
    """One data set in LM-BFF's ``data`` folder: ``k-shot/NAME/16-13/…`` and ``original/NAME/…``."""

    folder: Path
    name: str

    @classmethod
    def find(cls, folder: Path, name: str) -> "LMBFFFolder | None":
        """The data set in this folder, if the folder has this layout and contains it."""
        source = cls(folder, name)
        is_there = name in LAYOUTS and (source._k_shot.is_dir() or source._original.is_dir())
        return source if is_there else None

    def k_shot(self, k: int, seed: int) -> tuple[LabelledData, LabelledData] | None:
        """The split that LM-BFF's own script wrote."""
        split = self._k_shot / f"{k}-{seed}"
        if not split.is_dir():
            return None
        return self._read(split / f"train.{self._suffix}"), self._read(
            split / f"dev.{self._suffix}"
        )

    def pool(self) -> LabelledData:
        """The training file that LM-BFF samples from."""
        path = self._original / f"train.{self._suffix}"
        if not path.exists():
            raise CPTuningError(
                f"{path} does not exist: without the whole training file, only LM-BFF's own "
                "splits can be loaded."
            )
        return self._read(path)

    def test(self) -> LabelledData:
        """The test file, which is the same in each split: for GLUE's data sets, its dev set."""
        original = self._original / ("dev.tsv" if self._layout.texts else "test.csv")
        for path in [*sorted(self._k_shot.glob(f"*/test.{self._suffix}")), original]:
            if path.exists():
                return self._read(path)
        raise CPTuningError(f"{self._k_shot} has no test.{self._suffix} in any split: add one.")

    @property
    def _layout(self) -> _FolderLayout:
        return LAYOUTS[self.name]

    @property
    def _suffix(self) -> str:
        return "tsv" if self._layout.texts else "csv"

    @property
    def _k_shot(self) -> Path:
        return self.folder / "k-shot" / self._layout.folder

    @property
    def _original(self) -> Path:
        return self.folder / "original" / self._layout.folder

    def _read(self, path: Path) -> LabelledData:
        layout = self._layout
        rows = list(_tsv_rows(path, layout) if layout.texts else _csv_rows(path))
        for number, (_, label) in enumerate(rows, start=1):
            if label not in layout.labels:
                raise CPTuningError(
                    f"{path}: the label {label!r} of example {number} is not one of "
                    f"{', '.join(layout.labels)}."
                )
        return LabelledData(
            as_examples([texts if len(texts) == 2 else texts[0] for texts, _ in rows]),
            [layout.labels[label] for _, label in rows],
        )


def _tsv_rows(path: Path, layout: _FolderLayout) -> Iterator[tuple[tuple[str, ...], str]]:
    """The texts and the label of each line; GLUE's files have no quoting.

    Truncated lines (QQP has a few) are skipped, as in LM-BFF.
    """
    lines = path.read_text(encoding="utf-8-sig").split("\n")
    header = lines[0].split("\t")
    missing = [name for name in (*layout.texts, layout.label) if name not in header]
    if missing:
        raise CPTuningError(f"{path}, line 1: the header has no {', '.join(missing)}.")
    for line in lines[1:]:
        cells = dict(zip(header, line.split("\t"), strict=False))
        if len(cells) == len(header):
            yield tuple(cells[name] for name in layout.texts), cells[layout.label]


def _csv_rows(path: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        for number, cells in enumerate(csv.reader(stream), start=1):
            if len(cells) != 2:
                raise CPTuningError(
                    f"{path}: example {number} has {len(cells)} cells, not a label and a text."
                )
            yield (cells[1],), cells[0]
