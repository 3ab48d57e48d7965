"""What a machine with the base install does with exported folders; run as a program by the tests.

Usage: base_install.py FOLDER..., each with a ``job.json``; answers go to its ``answers.npz``.
"""

import json
import sys
from pathlib import Path

import numpy as np

ABSENT = ("torch", "transformers", "accelerate", "pandas", "onnx", "matplotlib")


class Absent:
    """Makes packages that are installed here impossible to import."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def examples(rows):
    """JSON has no tuples."""
    return [tuple(row) if isinstance(row, list) else row for row in rows]


def answers(place):
    import cptuning
    from cptuning.errors import CPTuningError

    job = json.loads((place / "job.json").read_text("utf-8"))
    texts, more = examples(job["texts"]), examples(job["more"])
    model = cptuning.load(place / "exported")
    found = {
        "embeddings": model.transform(texts),
        "alone": np.concatenate([model.transform([text]) for text in texts]),
        "some": np.concatenate([model.transform(texts[:3]), model.transform(texts[3:])]),
        "labels": model.predict(texts),
        "probabilities": model.predict_proba(texts),
        "nearest": [evidence[0].similarity for evidence in model.explain(texts, k=1)],
    }
    try:
        model.fit(texts[:4], ["a", "b", "a", "b"])
    except CPTuningError as error:
        found["fit"] = str(error)
    try:
        cptuning.load(place / "saved")
    except CPTuningError as error:
        found["load"] = str(error)

    model.add_examples(more, ["new"] * len(more))
    model.save(place / "again")
    model.save(place / "exported")  # in place of what it was loaded from
    for folder in ("again", "exported"):
        reloaded = cptuning.load(place / folder)
        found[f"{folder} classes"] = reloaded.classes_
        found[f"{folder} labels"] = reloaded.predict(texts + more)
        found[f"{folder} texts"] = [
            str((e.against or e[0]).text) for e in reloaded.explain(more, k=1)
        ]
    return found


if __name__ == "__main__":
    sys.meta_path.insert(0, Absent())
    for folder in sys.argv[1:]:
        np.savez(Path(folder) / "answers.npz", **answers(Path(folder)))
    assert not set(ABSENT) & set(sys.modules)
