"""What the page shows: figures in words, and never a visitor's text as HTML."""

import numpy as np
import pytest

from cptuning.app import views
from cptuning.app.background_job import Progress
from cptuning.app.checks import ExamplesCheck
from cptuning.app.review import EmbeddingMap, HeldOutAnswer, Review
from cptuning.app.session import ExplainedAnswer, Session
from cptuning.app.user_examples import Example, TableColumns
from cptuning.cleaning import SimilarLabels
from cptuning.estimator import CPTuningClassifier
from cptuning.inference import Evidence, Reasons, Suggestion

EVIL = "<script>alert(1)</script>"
EVIL_QUOTES = "\"' onmouseover=alert(1) x="
EXAMPLE = Example(EVIL, EVIL)
DOUBT = HeldOutAnswer(EXAMPLE, EVIL, 0.9, 0.1, 0.8)
EVIL_EVIDENCE = Evidence(EVIL, EVIL, 0.5)
EVIL_REASONS = Reasons([EVIL_EVIDENCE], against=EVIL_EVIDENCE)

VIEWS = {
    "check": views.check_view(ExamplesCheck.of([EXAMPLE, EXAMPLE, Example(EVIL, "b")])),
    "map": views.map_view([EXAMPLE], EmbeddingMap(np.zeros((1, 2)), "PCA"), [DOUBT]),
    "examples": views.examples_view([EXAMPLE]),
    "preview": views.preview_view([{EVIL: EVIL}], TableColumns(EVIL)),
    "same class": views.same_class_view(SimilarLabels(EVIL, EVIL, True)),
    "done": views.done_view(EVIL),
    "doubtful": views.doubtful_view([DOUBT], [EXAMPLE]),
    "answer": views.answer_view(ExplainedAnswer(EVIL, EVIL, {EVIL: 1.0}, EVIL_REASONS)),
    "unknown": views.answer_view(ExplainedAnswer(EVIL, "unknown", {EVIL: 1.0}, Reasons())),
    "rows": views.rows_view([{EVIL: EVIL}]),
    "suggestions": views.suggestions_view([Suggestion(0, (EVIL, EVIL), EVIL, 0.5)]),
    "progress": views.progress_view(Progress(0.5, EVIL)),
    "confusion": views.confusion_view(Review((DOUBT,))),
    "note": views.note(EVIL),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_text_is_escaped(name):
    assert "<script" not in VIEWS[name]
    assert "alert" in VIEWS[name] or name == "confusion"


def test_quotes_do_not_leave_an_attribute():
    shown = views.map_view([Example(EVIL_QUOTES, "a")], EmbeddingMap(np.zeros((1, 2)), "PCA"), [])
    shown += views.same_class_view(SimilarLabels(EVIL_QUOTES, EVIL_QUOTES, True))
    assert "\"' onmouseover" not in shown.replace("&quot;", "").replace("&#x27;", "")


def test_the_accuracy_has_its_interval_and_what_to_compare_it_with():
    right = HeldOutAnswer(Example("a", "x"), "x", 0.9, 0.9, 0.0)
    wrong = HeldOutAnswer(Example("b", "y"), "x", 0.9, 0.1, 0.8)
    session = Session()
    session.classifier, session.is_trained, session.changes = CPTuningClassifier(), True, 2
    session.review = Review((right, right, right, wrong))
    shown = views.review_view(session)
    assert "75 % accuracy" in shown
    assert "95 % interval 30 to 95 %, from 4 answers to examples it had not seen" in shown
    assert "most frequent class would give 75 %" in shown
    assert "So few examples promise nothing yet" in shown
    assert "2 examples changed since the training" in shown
    session.is_training = True
    again = views.review_view(session)
    assert "this is the previous one" in again
    assert "Train again" not in again


def test_time_left_is_told_when_it_is_known():
    assert "about 12 s left" in views.progress_view(Progress(0.5, "Training", 12.3))
    assert "about 5 min left" in views.progress_view(Progress(0.5, "Training", 290.0))
    assert "left" not in views.progress_view(Progress(0.0, "Training"))


def test_what_speaks_against_an_answer_stands_below_its_reasons():
    reasons = Reasons([Evidence("late", "delivery", 0.8)], Evidence("my money", "refund", 0.9))
    shown = views.answer_view(
        ExplainedAnswer("x", "delivery", {"delivery": 0.6, "refund": 0.4}, reasons)
    )
    order = ("because it is similar to", "late", "although this is even nearer", "my money", "0.90")
    assert [shown.index(words) for words in order] == sorted(shown.index(w) for w in order)


def test_unknown_still_says_what_is_nearest():
    answer = ExplainedAnswer("x", "unknown", {"good": 0.6, "bad": 0.4}, Reasons())
    assert "the nearest class would be <b>good</b>" in views.answer_view(answer)
