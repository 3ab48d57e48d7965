"""A visitor's work without a browser: examples, training, answers, corrections."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from tests.app.conftest import FILMS, GOOD, PAIRS
from tests.tiny import save_sentence_encoder

from cptuning.app.review import HeldOutAnswer, LabelSetReview, Review
from cptuning.app.session import AppSettings, Session
from cptuning.app.user_examples import Example
from cptuning.errors import CPTuningError
from cptuning.estimator import CPTuningClassifier


def known(session):
    """What the model itself knows, in its order."""
    predictor = session.classifier.predictor_
    labels = predictor.label_space.decode(predictor.support.labels).tolist()
    return [Example(*both) for both in zip(predictor.support.examples, labels, strict=True)]


class TestTraining:
    def test_it_reports_and_leaves_a_model_with_a_review(self, session):
        session.add(FILMS)
        reports = list(session.train().run())
        assert [r.share for r in reports] == sorted(r.share for r in reports)
        assert session.is_trained
        assert session.changes == 0
        assert len(session.review.answers) == len(FILMS)
        history = session.classifier.history_
        kept = history.scores[history.best_step]
        assert session.gain == (history.scores[0].accuracy, kept.accuracy)
        session.clear()
        assert session.gain is None

    def test_a_sentence_encoder_is_trained_reviewed_and_taught_too(self, tmp_path):
        encoder = save_sentence_encoder(tmp_path / "encoder")
        session = Session(AppSettings(str(encoder), {"steps": 2}))
        session.add(FILMS)
        list(session.train().run())
        session.add([Example("where is my parcel?", "delivery")])
        assert known(session) == session.examples
        assert len(session.review.answers) == len(FILMS)
        session.close()

    def test_too_little_is_refused_before_anything_starts(self, session):
        with pytest.raises(CPTuningError, match="Add examples first"):
            session.train()
        with pytest.raises(CPTuningError, match="Add examples first"):
            session.request_training()
        assert not session.is_training

    def test_who_asks_for_one_is_told_to_wait_until_it_is_cancelled(self, session):
        session.add(FILMS)
        session.delete(range(3))  # One example of a class is too little for an instant model.
        session.request_training()
        with pytest.raises(CPTuningError, match="being trained"):
            session.model()
        session.cancel_training()
        with pytest.raises(CPTuningError, match="no model yet"):
            session.model()

    def test_who_clears_all_at_its_very_end_gets_no_model(self, session, monkeypatch):
        def cleared(*_):
            session.clear()

        monkeypatch.setattr("cptuning.app.session.review_of", cleared)
        session.add(FILMS)
        with pytest.raises(CPTuningError, match="Cancelled"):
            list(session.train().run())
        assert not session.is_trained
        assert session.review is None
        assert session.examples == []

    def test_a_cancelled_training_loses_nothing(self, trained):
        before, review = trained.classifier, trained.review
        trained.add([Example("so so", "fair"), Example("not bad", "fair")])
        trained.settings = replace(trained.settings, method={"steps": 100_000})
        reports = trained.train().run()
        while "step" not in next(reports).doing:
            pass
        trained.cancel()
        with pytest.raises(CPTuningError, match="Cancelled"):
            list(reports)
        assert trained.classifier is before
        assert trained.review is review
        assert len(trained.examples) == len(FILMS) + 2

    def test_what_changes_during_the_training_is_known_after_it(self, session):
        session.add(FILMS)
        reports = session.train().run()
        next(reports)
        session.add([Example("so so", "fair")])
        session.delete([0])
        list(reports)
        assert session.examples == known(session) == [*FILMS[1:], Example("so so", "fair")]
        assert session.changes == 2

    def test_repeats_that_are_removed_during_the_training_do_not_come_back(self, session):
        session.add([*FILMS, FILMS[0]])
        reports = session.train().run()
        next(reports)
        session.delete_repeats()
        list(reports)
        assert session.examples == known(session) == FILMS

    def test_who_starts_over_in_the_last_moment_has_started_over(self, session, monkeypatch):
        fit = CPTuningClassifier.fit_prepared

        def fit_and_start_over(classifier, training):
            fit(classifier, training)
            session.clear()

        monkeypatch.setattr(CPTuningClassifier, "fit_prepared", fit_and_start_over)
        session.add(FILMS)
        with pytest.raises(CPTuningError, match="Cancelled"):
            list(session.train().run())
        assert session.examples == []
        assert not session.is_trained

    def test_the_cross_fitted_answers_belong_to_their_examples(self, trained):
        assert [a.example for a in trained.review.answers] == FILMS
        held_out = trained.classifier.held_out_
        assert trained.review.confusion.accuracy == pytest.approx(held_out.score().accuracy)
        low, high = trained.review.interval
        assert low <= trained.review.confusion.accuracy <= high

    def test_an_example_alone_in_its_class_has_no_cross_fitted_answer(self, session):
        session.add([*FILMS, Example("so so", "fair")])
        list(session.train().run())
        assert len(session.review.answers) == len(FILMS)

    def test_doubtful_examples_are_those_whose_label_is_probably_wrong(self):
        chances = {"b": 0.6, "c": 0.9, "d": 0.4}
        review = Review(
            (
                *(HeldOutAnswer(Example(t, "x"), "y", 0.9, 0.1, p) for t, p in chances.items()),
                HeldOutAnswer(Example("right", "x"), "x", 0.6, 0.6, 0.7),
            )
        )
        examples = [answer.example for answer in review.answers]
        assert [a.example.text for a in review.doubtful(examples)] == ["c", "b"]
        assert [a.example.text for a in review.doubtful(examples[:1])] == ["b"]


class TestInstantModels:
    def test_two_classes_of_two_examples_are_enough(self, session):
        session.add([*FILMS[:2], FILMS[-1]])
        assert not session.needs_reading
        with pytest.raises(CPTuningError, match="two classes with two examples"):
            session.answer("hello")
        session.add([FILMS[-2]])
        assert session.needs_reading
        session.read()
        assert session.has_model
        assert not session.is_trained
        assert [a.example for a in session.review.answers] == session.examples
        assert len(session.map().points) == 4

    def test_it_is_made_anew_when_the_examples_change(self, session):
        session.add(FILMS)
        session.teach("the red train leaves", "trains")
        session.add([Example("the train is late", "trains")])
        session.relabel(0, "bad")
        assert session.needs_reading
        assert "trains" in session.answer("the red train").probabilities
        assert known(session) == session.examples
        assert session.changes == 0
        session.delete(range(7))
        assert not session.has_model
        assert not session.needs_reading

    def test_undo_brings_the_model_of_before_back_without_reading(self, session, monkeypatch):
        session.add(FILMS)
        session.read()
        before = session.classifier, session.review
        session.clear()
        monkeypatch.setattr(CPTuningClassifier, "fit", None)
        session.undo()
        assert (session.classifier, session.review) == before
        assert session.examples == FILMS

    def test_visitors_share_one_copy_of_a_backbone(self, settings):
        settings = replace(settings)
        sessions = [Session(settings), Session(settings)]
        for session in sessions:
            session.add(FILMS)
            session.read()
        one, other = (session.classifier.backbone for session in sessions)
        assert one is other

    def test_the_curve_is_measured_without_training(self, session):
        session.add(FILMS)
        list(session.measure_curve().run())
        assert session.curve.points()

    def test_too_many_examples_are_not_read_unasked(self, session, monkeypatch):
        monkeypatch.setattr("cptuning.app.instant_models.MOST_EXAMPLES", 7)
        session.add(FILMS)
        assert not session.needs_reading


class TestUndo:
    def test_each_action_is_undone_in_turn(self, trained):
        trained.relabel(0, "bad")
        trained.delete([3])
        trained.teach("so so", "fair")
        assert trained.news == trained.done == "Learned as fair: “so so”"
        for done in (f"Deleted: “{FILMS[4].text}”", f"Now bad: “{GOOD[0]}”", ""):
            trained.undo()
            assert trained.done == done
            assert known(trained) == trained.examples
        assert trained.examples == FILMS
        assert trained.changes == 0
        trained.undo()
        assert trained.examples == FILMS

    def test_starting_over_is_undone_with_the_model(self, trained):
        review = trained.review
        trained.clear()
        assert not trained.has_model
        trained.undo()
        assert trained.is_trained
        assert trained.review is review
        assert known(trained) == FILMS

    def test_what_fails_changes_nothing_and_is_not_undone(self, trained):
        with pytest.raises(CPTuningError):
            trained.add(PAIRS)
        assert trained.done == ""
        assert known(trained) == trained.examples == FILMS

    def test_a_training_begins_a_new_past(self, trained):
        trained.delete([0])
        list(trained.train().run())
        trained.undo()
        assert trained.examples == FILMS[1:]


def test_names_of_one_class_are_merged(trained):
    trained.add([Example("so nice", "Good"), Example("so very nice", "Good")])
    trained.merge("good", "Good")
    assert trained.check().counts == {"bad": 4, "good": 6}
    assert known(trained) == trained.examples
    assert trained.done == "Good is good now, in 2 examples."


def test_one_label_of_a_conflict_is_kept(trained):
    trained.add([Example("What a joy!", "bad")])
    trained.settle("What a joy!", "good")
    assert known(trained) == trained.examples == FILMS


class TestTheModelKnowsTheList:
    def test_after_training(self, trained):
        assert known(trained) == trained.examples == FILMS

    def test_after_adding_a_class(self, trained):
        trained.add([Example("where is my parcel?", "delivery")])
        assert known(trained) == trained.examples
        assert "delivery" in trained.labels
        assert trained.changes == 1

    def test_after_deleting(self, trained):
        trained.delete([0, 3])
        assert known(trained) == trained.examples == [*FILMS[1:3], *FILMS[4:]]

    def test_after_relabelling(self, trained):
        trained.relabel(0, " bad ")
        assert known(trained) == trained.examples == [*FILMS[1:], Example(GOOD[0], "bad")]
        assert trained.changes == 1

    def test_a_class_without_examples_is_no_answer_any_more(self, trained):
        trained.delete(range(4))
        assert trained.classifier.classes_.tolist() == ["bad"]
        assert trained.answer(GOOD[0]).probabilities == {"bad": 1.0}

    def test_the_last_example_cannot_be_taken_from_a_model(self, trained):
        with pytest.raises(CPTuningError, match="at least one"):
            trained.delete(range(8))
        assert len(trained.examples) == 8

    def test_repeats_are_forgotten(self, trained):
        trained.add(FILMS[:2])
        trained.delete_repeats()
        assert known(trained) == trained.examples == FILMS


class TestAnswers:
    def test_an_answer_comes_with_probabilities_and_reasons(self, trained):
        answer = trained.answer(GOOD[0])
        assert sum(answer.probabilities.values()) == pytest.approx(1)
        assert answer.reasons[0].text == GOOD[0]
        assert list(answer.probabilities.values()) == sorted(
            answer.probabilities.values(), reverse=True
        )

    def test_far_from_everything_is_unknown(self, trained):
        trained.settings = replace(trained.settings, unknown_threshold=0.999)
        list(trained.train().run())
        assert trained.answer("the parcel came late").is_unknown
        assert not trained.answer(GOOD[0]).is_unknown

    def test_a_correction_is_learned_at_once(self, trained):
        trained.teach("so so", "fair")
        assert trained.answer("so so").reasons[0].label == "fair"
        trained.teach("so so", "bad")
        assert trained.answer("so so").reasons[0].label == "bad"
        assert trained.examples == [*FILMS, Example("so so", "bad")]

    def test_a_taught_text_is_answered_as_taught_with_high_confidence(self, trained):
        trained.settings = replace(trained.settings, method={"steps": 2})
        list(trained.train().run())
        trained.teach("what a lovely joy", "bad")
        answer = trained.answer("what a lovely joy")
        assert (answer.label, answer.probabilities["bad"], answer.is_taught) == ("bad", 1.0, True)
        assert not trained.answer("something else").is_taught

    def test_a_text_with_two_labels_is_answered_as_any_other(self, trained):
        trained.add([Example(GOOD[0], "bad")])
        assert not trained.answer(GOOD[0]).is_taught

    def test_what_is_known_needs_no_teaching(self, trained):
        with pytest.raises(CPTuningError, match="already"):
            trained.teach(GOOD[0], "good")

    def test_pairs_need_both_texts(self, trained_on_pairs):
        assert trained_on_pairs.answer("is it red?", "it is red.").reasons[0].label == "yes"
        with pytest.raises(CPTuningError, match="both texts"):
            trained_on_pairs.answer("is it red?")
        assert known(trained_on_pairs) == PAIRS

    def test_without_a_model_there_is_one_sentence(self, session):
        with pytest.raises(CPTuningError, match="no model yet"):
            session.answer("hello")


@pytest.mark.parametrize("label", ["unknown", " "])
def test_some_names_no_class_may_have(trained, label):
    with pytest.raises(CPTuningError):
        trained.relabel(0, label)
    assert known(trained) == trained.examples == FILMS


def test_texts_and_pairs_do_not_mix(trained):
    with pytest.raises(CPTuningError, match="use one kind"):
        trained.add(PAIRS)
    assert trained.examples == FILMS


def test_the_map_has_a_place_for_each_example(trained):
    points = trained.map().points
    assert points.shape == (8, 2)
    assert points.min() >= 0
    assert points.max() <= 1
    trained.delete([0])
    assert len(trained.map().points) == 7
    assert np.isfinite(trained.map().points).all()


def test_the_map_is_that_of_the_model_that_answers(session):
    session.add(FILMS)
    untrained = session.map()
    assert session.map() is untrained
    list(session.train().run())
    assert session.map() is not untrained


def test_the_curve_grows_and_can_be_stopped(trained):
    reports = trained.measure_curve().run()
    while next(reports).news is None:
        pass
    trained.cancel()
    with suppress(CPTuningError):  # It may have come to its end in the meantime.
        list(reports)
    assert trained.curve.points()


def test_the_whole_curve(trained):
    job = trained.measure_curve()
    list(job.run())
    assert job.result is trained.curve
    assert all(len(point.values) == 3 for point in trained.curve.points())


def test_a_curve_of_too_few_examples_is_refused(trained_on_pairs):
    with pytest.raises(CPTuningError, match="at least 3 examples"):
        trained_on_pairs.measure_curve()


def test_two_visitors_do_not_meet(trained, settings):
    from cptuning.app.session import Session

    other = Session(settings)
    assert other.examples == []
    assert other.file("x") != trained.file("x")
    other.close()


def test_examples_that_are_added_in_several_threads_all_reach_the_model(trained):
    added = [Example(f"film number {n}", "good") for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda example: trained.add([example]), added))
    assert known(trained) == trained.examples
    assert sorted(trained.examples) == sorted([*FILMS, *added])
    assert trained.changes == len(added)


def test_every_visitor_begins_with_an_empty_copy(trained):
    copy = deepcopy(trained)
    assert (copy.settings, copy.examples, copy.is_trained) == (trained.settings, [], False)


MOVIES = [
    Example("great film and great music", ("music", "praise")),
    Example("i loved the acting", ("acting", "praise")),
    Example("the music was awful", ("complaint", "music")),
    Example("terrible songs and acting", ("acting", "complaint", "music")),
    Example("lovely songs", ("music", "praise")),
    Example("i will see it tomorrow", ()),
]


class TestSeveralLabels:
    @pytest.fixture
    def session(self, session):
        session.settings = replace(session.settings, method={"steps": 2})
        session.add(MOVIES)
        session.read()
        return session

    def test_label_sets_are_answered_reviewed_and_explained(self, session):
        assert session.several
        assert session.check().counts == {"acting": 2, "complaint": 2, "music": 4, "praise": 3}
        assert isinstance(session.review, LabelSetReview)
        assert session.review.scores.n == len(MOVIES)
        answer = session.answer("lovely songs")
        assert answer.is_taught
        assert answer.label == ("music", "praise")
        assert set(answer.label_reasons) == {"music", "praise"}
        assert answer.probabilities == {"music": 1, "praise": 1, "acting": 0, "complaint": 0}

    def test_a_text_is_relabelled_taught_and_may_have_no_label(self, session):
        session.relabel(0, ["praise", "plot"])
        assert session.examples[-1] == Example(MOVIES[0].text, ("plot", "praise"))
        session.teach("hello", "")
        assert session.answer("hello").label == ()
        session.merge("praise", "plot")
        assert Example(MOVIES[0].text, ("praise",)) in session.examples

    def test_a_training_takes_label_sets_and_what_came_meanwhile(self, session):
        reports = session.train().run()
        next(reports)
        session.add([Example("what a plot", "praise; plot")])
        list(reports)
        assert session.is_trained
        assert session.examples[-1].label == ("plot", "praise")
        assert session.answer("what a plot").label == ("plot", "praise")
        assert session.curve is None

    def test_joined_labels_are_told_apart_when_asked_and_joined_again(self, session):
        session.clear()
        session.add([Example("a", "late/rude"), Example("b", "late"), Example("c", "rude")])
        assert session.check().joined == ("late/rude", "/")
        session.allow_several(True, "/")
        assert [e.label for e in session.examples] == [("late", "rude"), ("late",), ("rude",)]
        assert session.check().joined is None
        session.allow_several(False)
        assert session.examples[0].label == "late; rude"
        session.undo()
        assert session.several
        assert session.examples[0].label == ("late", "rude")

    def test_doubts_propose_whole_label_sets(self, session):
        made = replace(
            session.review, doubts=(HeldOutAnswer(MOVIES[0], ("music",), 0.9, 0.1, 0.9),)
        )
        [doubt] = made.doubtful(session.examples)
        assert doubt.answer == ("music",)
        assert made.doubtful(MOVIES[1:]) == []
