"""From embeddings to answers: neighbours, prototypes, probabilities, evidence. No torch here."""

from cptuning.inference.calibration import (
    expected_calibration_error,
    fit_temperature,
    log_loss,
    softmax,
    uncertainty,
)
from cptuning.inference.conformal import ConformalSets
from cptuning.inference.explanations import Explanations, LabelExplanations
from cptuning.inference.familiarity import (
    auroc,
    familiarity,
    familiarity_of_examples,
    threshold_for,
)
from cptuning.inference.hierarchy import Hierarchy
from cptuning.inference.index import ApproximateIndex, Index
from cptuning.inference.label_calibration import LabelCalibration
from cptuning.inference.multi_label import MultiLabelPredictor
from cptuning.inference.ordinal import Order, mean_distance, medians, order_of
from cptuning.inference.predictor import (
    UNKNOWN,
    EmbeddingPredictor,
    Encoder,
    HeadPredictor,
    Predictor,
    Scorer,
    SecondLook,
)
from cptuning.inference.reasons import Evidence, Reasons
from cptuning.inference.rejection import Rejection, error_target, rejection
from cptuning.inference.scoring import Inference, class_scores, knn_votes, prototypes
from cptuning.inference.suggestion import Suggestion, suggested, suggestions
from cptuning.inference.support import SupportSet

__all__ = [
    "UNKNOWN",
    "ApproximateIndex",
    "ConformalSets",
    "EmbeddingPredictor",
    "Encoder",
    "Evidence",
    "Explanations",
    "HeadPredictor",
    "Hierarchy",
    "Index",
    "Inference",
    "LabelCalibration",
    "LabelExplanations",
    "MultiLabelPredictor",
    "Order",
    "Predictor",
    "Reasons",
    "Rejection",
    "Scorer",
    "SecondLook",
    "Suggestion",
    "SupportSet",
    "auroc",
    "class_scores",
    "error_target",
    "expected_calibration_error",
    "familiarity",
    "familiarity_of_examples",
    "fit_temperature",
    "knn_votes",
    "log_loss",
    "mean_distance",
    "medians",
    "order_of",
    "prototypes",
    "rejection",
    "softmax",
    "suggested",
    "suggestions",
    "threshold_for",
    "uncertainty",
]
