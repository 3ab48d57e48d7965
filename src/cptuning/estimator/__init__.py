"""The scikit-learn face of the methods: one base, and a class for each."""

from cptuning.estimator.base import TextClassifier
from cptuning.estimator.cp_tuning import CPTuningClassifier

__all__ = ["CPTuningClassifier", "TextClassifier"]
