"""Whether a fit gives bitwise the same model in this tree as at another commit.

``python -m benchmarks.same_fit COMMIT`` trains a few small models with the sources of that commit
and with those of this tree, each in a process of its own with the same seed and one thread, through
the public interface alone. It compares every tensor of the saved models, the probabilities and the
embeddings, prints a line per case, and exits with 1 if anything differs. A change that is meant to
leave every fit as it is can be checked by it; one that changes a preset can't.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]

GOOD = ["a great film", "i loved every minute", "what a joy", "wonderful acting and a fine plot"]
BAD = ["a dull mess", "i hated it", "so boring that i slept", "terrible acting, no plot"]
TRAVEL = ["the train leaves at nine", "my flight was late", "a hotel by the sea", "two tickets"]
NEW = ["it was awful", "a fine evening", "is the bus on time ?", "never again"]
MORE = ["the plot is thin", "she sings well", "an hour too long", "we left early"]

SENTIMENT = (GOOD + BAD, ["positive"] * 4 + ["negative"] * 4, NEW)
TOPICS = (GOOD + BAD + TRAVEL, ["good"] * 4 + ["bad"] * 4 + ["travel"] * 4, NEW)
PAIRS = (
    [*zip(GOOD, reversed(GOOD), strict=True), *zip(BAD, TRAVEL, strict=True)],
    ["same"] * 4 + ["other"] * 4,
    [*zip(NEW, GOOD, strict=True)],
)
STEPS = {"steps": 6, "evaluate_every": 3, "verbose": False, "device": "cpu", "random_state": 3}

CASES = {
    "CP-Tuning, single texts": ("cp-tuning", SENTIMENT, STEPS, {}),
    "CP-Tuning, pairs": ("cp-tuning", PAIRS, STEPS, {}),
    "CP-Tuning, many classes": ("cp-tuning", TOPICS, STEPS, {"unlabeled": MORE}),
    # The only one with dropout, which is drawn anew at each step.
    "Fine-tuning": ("fine-tuning", SENTIMENT, STEPS | {"validation": "none"}, {}),
    "PET": ("pet", SENTIMENT, STEPS | {"task": "SST-2"}, {"unlabeled": MORE}),
    "P-tuning": (
        "p-tuning",
        SENTIMENT,
        STEPS | {"task": "SST-2", "validation": "none"},
        {"X_dev": NEW, "y_dev": ["negative", "positive", "positive", "negative"]},
    ),
}


def fingerprints() -> dict[str, dict[str, str]]:
    """By case, the hash of everything that a fit with the installed sources leaves."""
    import numpy as np
    import torch
    from safetensors.numpy import load_file

    from cptuning import make_classifier

    torch.set_num_threads(1)

    def hashed(array: np.ndarray) -> str:
        words = f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes()
        return hashlib.sha256(words).hexdigest()

    found = {}
    for case, (method, (texts, labels, new), parameters, more) in CASES.items():
        classifier = make_classifier(method, **parameters).fit(texts, labels, **more)
        marks = {
            "predict_proba": hashed(classifier.predict_proba(new)),
            "best_step": str(classifier.training_["best_step"]),
        }
        if method == "cp-tuning":
            marks["transform"] = hashed(classifier.transform(new))
        with tempfile.TemporaryDirectory() as place:
            classifier.save(Path(place) / "model")
            # By the tensors' own names: the files may be called and placed differently.
            for path in Path(place).rglob("*.safetensors"):
                marks |= {name: hashed(tensor) for name, tensor in load_file(path).items()}
        found[case] = marks
    return found


def differing(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """The names of what is different, or is there only once."""
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def fingerprints_of(source: Path) -> dict[str, dict[str, str]]:
    """The same, computed by a process that imports the package from a source folder."""
    environment = os.environ | {
        "PYTHONPATH": str(source),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    command = [sys.executable, Path(__file__), "--fingerprints"]
    answer = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(answer.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", help="the commit to compare this tree with")
    parser.add_argument("--fingerprints", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fingerprints:
        print(json.dumps(fingerprints()))
        return 0
    if options.commit is None:
        parser.error("name the commit to compare this tree with")
    with tempfile.TemporaryDirectory() as place:
        archive = subprocess.run(
            ["git", "-C", ROOT, "archive", options.commit, "src"],
            stdout=subprocess.PIPE,
            check=True,
        )
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(place, filter="data")
        old = fingerprints_of(Path(place) / "src")
    new = fingerprints_of(ROOT / "src")
    differs = False
    for case in CASES:
        other = differing(old[case], new[case])
        differs |= bool(other)
        verdict = f"{len(other)} differ, such as {other[0]}" if other else "all the same"
        print(f"{case}: {len(new[case])} arrays, {verdict}")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
