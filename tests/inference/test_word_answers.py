import numpy as np
import pytest

from cptuning.data.sentences import Sentence
from cptuning.data.tag_schemes import WordSpan
from cptuning.errors import CPTuningError
from cptuning.inference.tag_decoding import Transitions
from cptuning.inference.word_answers import (
    HeldOutSpans,
    LabelledWords,
    WordAnswer,
    WordScores,
    chosen_answer,
    emissions,
    left_out_folds,
)
from cptuning.inference.word_shapes import word_shapes


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def some_words(n_sentences=12, seed=0, separation=2.0):
    """Sentences of four words, of which the second is a span of one of two types."""
    rng = np.random.default_rng(seed)
    vectors, labels, sentences = [], [], []
    for number in range(n_sentences):
        for label in (0, 1 + number % 2, 0, 0):
            vectors.append(rng.normal(size=8) + separation * np.eye(8)[label])
            labels.append(label)
            sentences.append(number)
    shapes = np.zeros((len(labels), 2), np.float32)
    return LabelledWords(unit(vectors), shapes, np.array(labels), np.array(sentences))


def truth_of(words):
    n = words.sentences.max() + 1
    return [(WordSpan(1, 2, "ab"[words.labels[4 * i + 1] - 1]),) for i in range(n)]


TRANSITIONS = Transitions.estimated([([WordSpan(1, 2, "a")], 4)])


def test_neighbours_score_by_the_most_similar_word_of_each_type():
    rng = np.random.default_rng(0)
    vectors, queries = unit(rng.normal(size=(9, 5))), unit(rng.normal(size=(4, 5)))
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    found = WordScores(vectors, labels, 3).of(WordAnswer("neighbours"), queries)
    for i, query in enumerate(queries):
        for label in range(3):
            best = max(float(query @ vectors[j]) for j in range(9) if labels[j] == label)
            assert found[i, label] == pytest.approx(best, abs=1e-6)


def test_the_nearest_mean_wins_among_prototypes():
    words = some_words()
    scores = WordScores(words.vectors, words.labels, 3).of(WordAnswer("prototype"), words.vectors)
    means = np.stack([words.vectors[words.labels == label].mean(axis=0) for label in range(3)])
    distances = ((words.vectors[:, None] - means) ** 2).sum(axis=2)
    assert (scores.argmax(axis=1) == distances.argmin(axis=1)).mean() > 0.9


def test_each_sentence_is_left_out_once_and_answered_by_the_others_alone():
    words = some_words(12)
    folds = left_out_folds(words, 12)
    assert len(folds) == 12
    for rest, away in folds:
        assert not set(rest.sentences) & set(away.sentences)
        assert len(rest.labels) + len(away.labels) == len(words.labels)
    assert sorted(n for _, away in folds for n in set(away.sentences.tolist())) == list(range(12))
    assert len(left_out_folds(some_words(45), 45)) == 20
    assert left_out_folds(some_words(1), 1) == []


def test_the_choice_finds_most_of_the_left_out_spans_and_tells_how_many():
    words = some_words(separation=4.0)
    answer, held_out = chosen_answer(
        left_out_folds(words, 12), truth_of(words), ["a", "b"], TRANSITIONS
    )
    assert held_out.f1 > 0.8
    assert answer.shape_weight == 0  # The shapes are all alike: the first weight stays.
    only, worse = chosen_answer(
        left_out_folds(words, 12), truth_of(words), ["a", "b"], TRANSITIONS, ["neighbours"]
    )
    assert only.inference == "neighbours"
    assert worse.f1 <= held_out.f1


def test_the_writing_of_words_counts_where_it_tells_types_apart():
    words = some_words(separation=0.0)
    shapes = np.eye(3, dtype=np.float32)[words.labels]
    written = LabelledWords(words.vectors, shapes, words.labels, words.sentences)
    answer, held_out = chosen_answer(
        left_out_folds(written, 12), truth_of(words), ["a", "b"], TRANSITIONS
    )
    assert answer.shape_weight > 0
    assert held_out.f1 > 0.9


def test_nothing_can_be_chosen_by_nothing():
    with pytest.raises(CPTuningError, match="at least two sentences"):
        chosen_answer([], [], ["a"], TRANSITIONS)


def test_a_type_without_words_is_hardly_ever_answered():
    words = some_words()
    for inference in ("neighbours", "lda", "prototype"):
        scores = WordScores(words.vectors, words.labels, 4)
        found = scores.of(WordAnswer(inference), words.vectors)
        assert found.shape[1] == 4
        assert not (found.argmax(axis=1) == 3).any()


def test_begin_and_inside_of_a_type_are_emitted_alike():
    found = emissions(np.array([[1.0, 0.0, 2.0]]), WordAnswer("lda", temperature=1.0))
    assert found.shape == (1, 5)
    assert found[0, 1] == found[0, 2]
    assert found[0, 3] == found[0, 4]
    np.testing.assert_allclose(np.exp(found[0, [0, 1, 3]]).sum(), 1)


def test_held_out_spans_are_clearly_better_only_if_by_more_than_chance():
    truth = tuple((WordSpan(0, 1, "a"),) for _ in range(20))
    none = tuple(() for _ in range(20))
    all_found, nothing = HeldOutSpans(truth, truth), HeldOutSpans(truth, none)
    one_less = HeldOutSpans(truth, (*truth[:-1], ()))
    assert (all_found.f1, nothing.f1) == (1, 0)
    assert all_found.is_clearly_better_than(nothing)
    assert not nothing.is_clearly_better_than(all_found)
    assert not all_found.is_clearly_better_than(one_less)
    assert not all_found.is_clearly_better_than(all_found)


def test_capitals_digits_and_punctuation_are_seen():
    sentence = Sentence.of_words(["In", "NATO", "iPhone", "b2", "1960", ",", "x-ray", "@me"])
    rows = word_shapes([sentence])
    own = rows[:, : rows.shape[1] // 3]
    assert len({tuple(row) for row in own}) == len(own)
    np.testing.assert_array_equal(
        rows, word_shapes([Sentence.of_words([]), sentence, Sentence.of_text("")])
    )


def test_a_type_of_a_single_sentence_does_not_spoil_the_others():
    words = some_words(separation=4.0)
    labels = words.labels.copy()
    labels[0] = 3  # There is nothing to tell this one by when its sentence is left out.
    rare = LabelledWords(words.vectors, words.shapes, labels, words.sentences)
    truth = truth_of(words)
    truth[0] = (WordSpan(0, 1, "c"), *truth[0])
    answer, held_out = chosen_answer(left_out_folds(rare, 12), truth, ["a", "b", "c"], TRANSITIONS)
    assert answer.temperature < 1
    assert held_out.f1 > 0.75
