"""Small made-up data folders, tiny backbones, and requests that take a second."""

import pytest

from cptuning.data.writing import open_writer
from cptuning.experiments.reproduce import reproduce
from cptuning.experiments.request import Request

NOUNS = (
    "movie",
    "film",
    "book",
    "train",
    "food",
    "service",
    "parcel",
    "network",
    "history",
    "tree",
)
GOOD = [f"the {noun} was {word}" for noun in NOUNS for word in ("great", "so good", "good", "red")]
BAD = [f"the {noun} was {word}" for noun in NOUNS for word in ("dull", "bad", "cold", "terrible")]
QUESTIONS = [
    (f"is the {noun} {w}?", f"the {noun} is {w}.") for noun in NOUNS for w in ("red", "big")
]
OTHERS = [(f"is the {noun} {w}?", "nobody says so.") for noun in NOUNS for w in ("red", "big")]


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_writer(str(path)) as writer:
        writer.write(rows)


def write_dataset(root, name, by_label, seeds=(13, 21, 42)):
    """A pool, a test file, and ready-made splits of four examples per class."""

    def rows(start, stop):
        return [
            {"text_a": text[0], "text_b": text[1], "label": label}
            if isinstance(text, tuple)
            else {"text_a": text, "label": label}
            for label, texts in by_label.items()
            for text in texts[start:stop]
        ]

    write_rows(root / name / "train.jsonl.gz", rows(0, None))
    write_rows(root / name / "test.jsonl.gz", rows(-6, None))
    for number, seed in enumerate(seeds):
        write_rows(root / name / f"16-{seed}" / "train.jsonl.gz", rows(number, number + 4))
        write_rows(root / name / f"16-{seed}" / "dev.jsonl.gz", rows(number + 5, number + 9))


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder with small data sets under the paper's names."""
    root = tmp_path_factory.mktemp("data")
    for name in ("SST-2", "MR", "CR"):
        write_dataset(root, name, {"negative": BAD, "positive": GOOD})
    write_dataset(root, "MRPC", {"not_equivalent": OTHERS, "equivalent": QUESTIONS})
    return root


@pytest.fixture
def request_for(data, tiny, tmp_path):
    """Makes requests on a tiny backbone."""

    def make(study="main", **changes):
        usual = {
            "output": tmp_path / "results",
            "backbone": str(tiny("bert")),
            "data": data,
            "datasets": ("CR",),
            "seeds": (13,),
            "methods": ("fine-tuning", "cp-tuning"),
            "steps": 1,
            "device": "cpu",
            "fast": True,
        }
        return Request(study, **usual | changes)

    return make


@pytest.fixture
def run(request_for):
    """Runs a request; gives what it said and the files it wrote."""

    def reproduced(study="main", **changes):
        said = []
        files = reproduce(request_for(study, **changes), said.append)
        return said, {path.name: path for path in files}

    return reproduced


def keys_of(folder, kind="runs"):
    return {path.stem for path in (folder / kind).glob("*.json")}
