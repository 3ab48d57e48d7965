"""The paper's figure of hyperparameters: accuracy against m, τn, ξ and λ."""

from cptuning.experiments.hyperparameters import HYPERPARAMETERS
from cptuning.experiments.report.common_tables import StudyResults, score_table
from cptuning.experiments.report.parts import Picture, ResultTable
from cptuning.experiments.report.study_pictures import Curves, curves_picture
from cptuning.experiments.studies.study import Row, Study

# Those that the paper's figure has on a scale of powers of two.
_DOUBLING = ("1/τn",)


def _rows(_dataset: str) -> list[Row]:
    return [
        Row(f"{symbol} = {shown:g}", "cp-tuning", {setting: value})
        for symbol, (setting, values) in HYPERPARAMETERS.items()
        for shown, value in values.items()
    ]


def _tables(results: StudyResults) -> list[ResultTable]:
    """One table per hyperparameter, so that each has a best value of its own."""
    return [
        score_table(results, part, f"Test accuracy in %, by {symbol}")
        for symbol in HYPERPARAMETERS
        if (part := results.accuracy.only(f"{symbol} = ")).values
    ]


def _pictures(results: StudyResults) -> list[Picture]:
    """One picture per hyperparameter, with one curve per data set."""
    accuracy, pictures = results.accuracy, []
    for symbol, (setting, values) in HYPERPARAMETERS.items():
        curves: Curves = {}
        for name in accuracy.datasets:
            for value in values:
                mean = accuracy.mean(f"{symbol} = {value:g}", name)
                if mean is not None:
                    spread = accuracy.spread(f"{symbol} = {value:g}", name) or 0.0
                    curves.setdefault(name, {})[value] = mean, spread
        if curves:
            pictures.append(
                curves_picture(
                    f"parameters-{setting.replace('_', '-')}",
                    f"Accuracy against {symbol}; the band is one standard deviation.",
                    curves,
                    symbol,
                    doubling=symbol in _DOUBLING,
                )
            )
    return pictures


PARAMETERS = Study(
    "parameters",
    "Parameters",
    "How much do the margin m, the temperature τn, ξ = τp/τn and the weight λ matter?",
    _rows,
    rates_only=True,
    tables=_tables,
    pictures=_pictures,
)
