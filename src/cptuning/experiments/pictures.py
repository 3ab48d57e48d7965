"""The paper's figures: accuracy against parameters, and embeddings on a plane."""

import numpy as np

from cptuning.experiments.document import Picture
from cptuning.experiments.paper import paper_scores
from cptuning.experiments.records import Records
from cptuning.experiments.results import Outcome, Scores
from cptuning.experiments.studies import PARAMETERS, title_of
from cptuning.reporting.figures import (
    Averages,
    Curves,
    averages_png,
    averages_svg,
    class_colour,
    curves_png,
    curves_svg,
    embedding_svg,
)
from cptuning.reporting.projection import project

# The parameters that the paper's figure has on a scale of powers of two.
_DOUBLING = ("1/τn",)


def averages_pictures(accuracy: Scores, theirs: str) -> list[Picture]:
    """The main table at a glance: every row's average, where it has all data sets."""
    names = accuracy.datasets
    rows: Averages = {}
    for row in accuracy.rows:
        means = [mean for name in names if (mean := accuracy.mean(row, name)) is not None]
        if len(means) == len(names):
            printed = paper_scores("main", row, theirs)
            numbers = [printed[name] for name in names if name in printed]
            average = float(np.mean(numbers)) if len(numbers) == len(names) else None
            rows[title_of(row)] = means, average
    if len(rows) < 2 or len(names) < 2:
        return []
    return [
        Picture(
            "main-averages",
            f"Test accuracy on the {len(names)} data sets (small dots), its average (large dots), "
            f"and the paper's average with {theirs} (diamonds).",
            averages_svg(rows, "main-averages"),
            averages_png(rows),
        )
    ]


def parameter_pictures(accuracy: Scores) -> list[Picture]:
    """A picture a parameter, with a curve a data set."""
    pictures = []
    for symbol, (setting, values) in PARAMETERS.items():
        curves: Curves = {}
        for name in accuracy.datasets:
            for value in values:
                mean = accuracy.mean(f"{symbol} = {value:g}", name)
                if mean is not None:
                    spread = accuracy.spread(f"{symbol} = {value:g}", name) or 0.0
                    curves.setdefault(name, {})[value] = mean, spread
        if curves:
            doubling = symbol in _DOUBLING
            name = setting.replace("_", "-")
            pictures.append(
                Picture(
                    f"parameters-{name}",
                    f"Accuracy against {symbol}; the band is one standard deviation.",
                    curves_svg(curves, symbol, name, doubling=doubling),
                    curves_png(curves, symbol, doubling=doubling),
                )
            )
    return pictures


def embedding_pictures(records: Records, found: list[Outcome]) -> list[Picture]:
    """A picture a data set: the training examples and some test examples."""
    pictures = []
    for one in found:
        with np.load(records.embeddings(one.run["key"])) as stored:
            vectors, labels = stored["embeddings"].astype(np.float32), stored["labels"]
            is_train = stored["is_train"]
        points, method = project(vectors)
        classes, numbers = np.unique(labels, return_inverse=True)
        pictures.append(
            Picture(
                f"tsne-{one.cell.dataset.lower()}",
                f"{one.cell.dataset}, split {one.cell.seed}: {int(is_train.sum())} training "
                f"examples (diamonds) and {int((~is_train).sum())} test examples; {method}. "
                f"Test accuracy {100 * one.test['accuracy']:.1f} %.",
                embedding_svg(points, numbers, is_train, f"tsne-{one.cell.dataset.lower()}"),
                legend={str(label): class_colour(i) for i, label in enumerate(classes)},
            )
        )
    return pictures
