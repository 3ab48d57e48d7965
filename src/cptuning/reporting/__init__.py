"""What is said about a model: figures, pictures, the report and the learning curve."""

from cptuning.reporting.evaluation import Evaluation, HardError
from cptuning.reporting.metrics import Confusion, reliability, wilson_interval
from cptuning.reporting.report import report_html

__all__ = [
    "Confusion",
    "Evaluation",
    "HardError",
    "reliability",
    "report_html",
    "wilson_interval",
]
