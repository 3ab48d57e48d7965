"""The paper's figure of embeddings: training and test examples on a plane."""

import numpy as np

from cptuning.experiments.report.common_tables import StudyResults
from cptuning.experiments.report.parts import Picture
from cptuning.experiments.report.study_pictures import embedding_picture
from cptuning.experiments.studies.study import Row, Study
from cptuning.reporting.figures import class_colour
from cptuning.reporting.projection import project


def _rows(_dataset: str) -> list[Row]:
    return [Row("cp-tuning", "cp-tuning")]


def _pictures(results: StudyResults) -> list[Picture]:
    """One picture per data set: the training examples and some test examples."""
    pictures = []
    for one in results.outcomes:
        with np.load(results.directory.embeddings(one.run["key"])) as stored:
            vectors, labels = stored["embeddings"].astype(np.float32), stored["labels"]
            is_train = stored["is_train"]
        points, method = project(vectors)
        classes, numbers = np.unique(labels, return_inverse=True)
        pictures.append(
            embedding_picture(
                f"tsne-{one.cell.dataset.lower()}",
                f"{one.cell.dataset}, split {one.cell.seed}: {int(is_train.sum())} training "
                f"examples (diamonds) and {int((~is_train).sum())} test examples; {method}. "
                f"Test accuracy {100 * one.test['accuracy']:.1f} %.",
                points,
                numbers,
                is_train,
                legend={str(label): class_colour(i) for i, label in enumerate(classes)},
            )
        )
    return pictures


TSNE = Study(
    "tsne",
    "Embeddings",
    "Are the classes separated in the space of [OMSK] embeddings?",
    _rows,
    ("SST-2", "CR", "SUBJ"),
    keeps_embeddings=True,
    one_seed=True,
    pictures=_pictures,
)
