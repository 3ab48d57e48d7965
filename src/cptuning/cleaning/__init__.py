"""Checks of labelled data: wrong labels, repeated texts, leaks from the test data."""

from cptuning.cleaning.data_check import check
from cptuning.cleaning.findings import KINDS, CheckedRow, DataCheck, Finding
from cptuning.cleaning.label_errors import LIKELY, ErrorEstimate, LabelError, label_errors
from cptuning.cleaning.repeats import Leak, Repeat, leaks, same_texts, similar_texts
from cptuning.cleaning.similar_labels import SimilarLabels, similar_labels

__all__ = [
    "KINDS",
    "LIKELY",
    "CheckedRow",
    "DataCheck",
    "ErrorEstimate",
    "Finding",
    "LabelError",
    "Leak",
    "Repeat",
    "SimilarLabels",
    "check",
    "label_errors",
    "leaks",
    "same_texts",
    "similar_labels",
    "similar_texts",
]
