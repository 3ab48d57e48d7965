import logging
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data.sentences import Sentence, as_sentences, as_tagged
from cptuning.data.tag_schemes import WordSpan, iob2_of, spans_of
from cptuning.errors import CPTuningError

TEXTS = st.text(st.sampled_from("ab Zé9.,-'_\n\u2028😀中\u0301\u200d\u093f🏽"), max_size=40)


@given(TEXTS)
def test_words_cover_everything_but_white_space(text):
    sentence = Sentence.of_text(text)
    assert "".join(sentence.words) == "".join(text.split())
    assert all(text[start:end] for start, end in sentence.places)
    assert list(sentence.places) == sorted(sentence.places)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("e\u0301cole a\u0301", ["e\u0301cole", "a\u0301"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("می\u200cروم", ["می\u200cروم"]),
        ("سَلام", ["سَلام"]),
        ("👩\u200d👩\u200d👧 hi👍🏽!", ["👩\u200d👩\u200d👧", "hi", "👍🏽", "!"]),
        ("❤\ufe0f5", ["❤\ufe0f", "5"]),
        ("İstanbul", ["İstanbul"]),
        ("a_b", ["a", "_", "b"]),
    ],
)
def test_marks_and_joiners_do_not_cut_words(text, words):
    assert list(Sentence.of_text(text).words) == words


@given(TEXTS, st.data())
def test_spans_of_words_come_back_from_their_characters(text, data):
    sentence = Sentence.of_text(text)
    borders = sorted(data.draw(st.sets(st.integers(0, len(sentence)), max_size=6)))
    spans = [
        WordSpan(start, stop, data.draw(st.sampled_from(["x", "y"])))
        for start, stop in pairwise(borders)
    ]
    marked = [sentence.marked(span) for span in spans]
    assert all(text[m["start"] : m["end"]] == m["text"] for m in marked)
    assert sentence.word_spans(marked, "here") == (spans, 0)
    tagged = as_tagged([text], [marked])
    assert spans_of(iob2_of(tagged.spans[0], len(sentence))) == spans


@given(st.lists(st.text(st.sampled_from("ab.é"), min_size=1, max_size=5), max_size=6))
def test_given_words_are_kept(words):
    sentence = Sentence.of_words(words)
    assert list(sentence.words) == words
    assert sentence.text.split() == words


def test_a_span_inside_a_word_is_widened_with_one_warning(caplog):
    with caplog.at_level(logging.WARNING, "cptuning"):
        tagged = as_tagged(["to Rome5 now", "Oslo"], [[(3, 7, "city")], [(0, 2, "city")]])
    assert tagged.spans == ((WordSpan(1, 2, "city"),), (WordSpan(0, 1, "city"),))
    assert [record.getMessage() for record in caplog.records] == [
        "2 of the spans begin or end inside a word: they were widened to whole words."
    ]


def test_white_space_at_the_ends_of_a_span_is_cut_off_without_a_warning(caplog):
    tagged = as_tagged(["to Rome now"], [[(2, 8, "city")]])
    assert tagged.spans == ((WordSpan(1, 2, "city"),),)
    assert not caplog.records


@pytest.mark.parametrize(
    ("texts", "answers", "message"),
    [
        (["to Rome"], [[(3, 9, "city")]], r"sentence 1: the span from 3 to 9 is not inside"),
        (["to Rome"], [[(3, 3, "city")]], r"is not inside the text, which has 7 characters"),
        (["to Rome"], [[(2, 3, "city")]], r"has no word in it"),
        (["to Rome"], [[(3.0, 7, "city")]], r"not inside the text"),
        (["to Rome"], [[(True, 7, "city")]], r"not inside the text"),
        (["to Rome"], [[(3, 7, "")]], r"the label '' of a span is not a text"),
        (["to Rome"], [[(3, 7)]], r"is not a span like"),
        (["to Rome"], [[{"start": 3, "end": 7}]], r"is not a span like"),
        (["to Rome"], [[5]], r"5 is not a span like"),
        (["to Rome"], ["city"], r"'city' is not a list of tags or of spans"),
        (["to Rome"], [None], r"None is not a list"),
        (["to Rome"], [], r"1 sentences and 0 lists"),
        (["New York"], [[(0, 8, "city"), (4, 8, "state")]], r"overlap at 'York'"),
        ([["to", "Rome"]], [["O"]], r"has 2 words and 1 tags"),
        ([["to", ""]], [["O", "O"]], r"sentence 1, word 2: '' is not a word"),
        ([["to", 3]], [["O", "O"]], r"sentence 1, word 2: 3 is not a word"),
        ([7], [["O"]], r"sentence 1, word 1: None is not a word"),
        ("to Rome", [["O"]], r"Give a list of texts"),
        (7, [["O"]], r"Give a list of texts"),
    ],
)
def test_bad_input_is_named_with_its_place(texts, answers, message):
    with pytest.raises(CPTuningError, match=message):
        as_tagged(texts, answers)


def test_sentences_without_words_are_sentences():
    assert [len(one) for one in as_sentences(["", "  ", []])] == [0, 0, 0]
    assert as_tagged(["", []], [[], []]).spans == ((), ())
