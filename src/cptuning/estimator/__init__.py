"""The scikit-learn interface of the methods: one base, and a class for each."""

from cptuning.estimator.base import TextClassifier
from cptuning.estimator.cp_tuning import CPTuningClassifier
from cptuning.estimator.ranker import CPTuningRanker
from cptuning.estimator.rivals import (
    FineTuningClassifier,
    LMBFFLabelClassifier,
    LMBFFTemplateClassifier,
    LMBFFTemplateLabelClassifier,
    PETClassifier,
    PTuningClassifier,
    WARPClassifier,
)
from cptuning.estimator.tagger import CPTuningTagger

__all__ = [
    "CPTuningClassifier",
    "CPTuningRanker",
    "CPTuningTagger",
    "FineTuningClassifier",
    "LMBFFLabelClassifier",
    "LMBFFTemplateClassifier",
    "LMBFFTemplateLabelClassifier",
    "PETClassifier",
    "PTuningClassifier",
    "TextClassifier",
    "WARPClassifier",
]
