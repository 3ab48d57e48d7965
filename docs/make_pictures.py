"""Draw the picture of docs/method.md: the demo's messages before and after training.

python docs/make_pictures.py
"""

import csv
from importlib.resources import files
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import TSNE

from cptuning import CPTuningClassifier


def demo(name: str) -> tuple[list[str], np.ndarray]:
    text = files("cptuning.data").joinpath("demo", f"{name}.csv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    return [row["text"] for row in rows], np.array([row["label"] for row in rows])


def main() -> None:
    train, train_labels = demo("messages_train")
    test, test_labels = demo("messages_test")
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    for panel, (title, steps) in zip(panels, (("untrained", 0), ("trained", None)), strict=True):
        classifier = CPTuningClassifier(steps=steps, validation="none").fit(train, train_labels)
        accuracy = classifier.score(test, test_labels)
        vectors = np.concatenate([classifier.transform(train), classifier.transform(test)])
        places = TSNE(random_state=0, perplexity=20, metric="cosine").fit_transform(vectors)
        for colour, label in enumerate(classifier.classes_):
            for rows, marker, size in ((train_labels, "o", 46), (test_labels, "x", 22)):
                here = places[: len(train)] if rows is train_labels else places[len(train) :]
                chosen = here[rows == label]
                name = label.replace("_", " ") if marker == "o" else None
                panel.scatter(
                    *chosen.T, s=size, marker=marker, color=f"C{colour}", label=name, linewidth=1
                )
        panel.set_title(f"{title}: {100 * accuracy:.0f} % of the test messages right")
        panel.set_xticks([])
        panel.set_yticks([])
    panels[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(Path(__file__).parent / "images" / "embeddings.png", dpi=110)


if __name__ == "__main__":
    main()
