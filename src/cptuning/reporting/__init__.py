"""Reports on models: metrics, figures, the HTML report and the learning curve."""

from cptuning.reporting.evaluation import ConfidentError, Evaluation
from cptuning.reporting.evaluation_report import report_html
from cptuning.reporting.metrics import ConfusionMatrix, reliability, wilson_interval

__all__ = [
    "ConfidentError",
    "ConfusionMatrix",
    "Evaluation",
    "reliability",
    "report_html",
    "wilson_interval",
]
