"""What the base install does with the embedded backbone; run as a program by the tests.

Usage: without_torch.py FOLDER: fits, predicts, explains, adds, saves and loads in it.
"""

import contextlib
import io
import sys
from pathlib import Path

from tests.export.base_install import ABSENT, Absent

DATA = Path(__file__).parents[2] / "src" / "cptuning" / "data" / "demo"


def in_python(folder):
    import cptuning
    from cptuning.data.sample_data import read_sample

    train, new = read_sample("messages_train"), read_sample("messages_test").examples
    classifier = cptuning.CPTuningClassifier(preset="instant", unknown_threshold="auto")
    classifier.fit(train.examples, train.labels)
    assert classifier.held_out_score_ > 0.6
    labels = classifier.predict(new).tolist()
    classifier.save(folder / "fitted")
    loaded = cptuning.load(folder / "fitted")
    assert loaded.predict(new).tolist() == labels
    assert len(loaded.explain(new, k=2)[0]) == 2
    loaded.add_examples(["is this vegan?"] * 2, ["diet"] * 2)
    loaded.save(folder / "fitted")
    again = cptuning.load(folder / "fitted")
    assert again.predict(["is this vegan?"]).tolist() == ["diet"]
    assert again.fit(train.examples, train.labels).predict(new).tolist() == labels


def by_commands(folder):
    model, new = folder / "model", folder / "new.csv"
    run("fit", DATA / "messages_train.csv", "--output", model, "--preset", "instant")
    assert "praise" in run("explain", model, "i love it")
    (folder / "more.csv").write_text("text,label\nis this vegan?,diet\n", "utf-8")
    run("add", model, folder / "more.csv")
    new.write_text("text\nis this vegan?\nwhere is my parcel?\n", "utf-8")
    answers = run("predict", model, new).splitlines()
    assert [line.split(",")[1] for line in answers[1:]] == ["diet", "delivery"]
    assert "accuracy" in run("evaluate", model, DATA / "messages_test.csv", "--json")


def run(*arguments):
    """What a command prints to standard output."""
    from cptuning.cli import app

    printed = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(printed, "utf-8", write_through=True)):
        app(list(map(str, arguments)), standalone_mode=False)
        return printed.getvalue().decode("utf-8")


if __name__ == "__main__":
    sys.meta_path.insert(0, Absent())
    in_python(Path(sys.argv[1]))
    by_commands(Path(sys.argv[1]))
    assert not set(ABSENT) & set(sys.modules)
