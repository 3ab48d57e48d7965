"""The paper's table of inference: the nearest examples against class prototypes."""

from cptuning.experiments.studies.study import Row, Study


def _rows(_dataset: str) -> list[Row]:
    neighbours = [
        Row(f"k = {k} nearest", "cp-tuning", {"inference": "knn", "k": k})
        for k in (1, 3, 5, 7, 9, 15)
    ]
    return [
        *neighbours,
        Row("prototypes", "cp-tuning", {"inference": "prototype"}),
        Row("prototypes of unit length", "cp-tuning", {"inference": "unit-prototype"}),
    ]


INFERENCE = Study(
    "inference",
    "Inference",
    "Do class prototypes do as well as the nearest examples?",
    _rows,
    rates_only=True,
    reference="prototypes",
)
