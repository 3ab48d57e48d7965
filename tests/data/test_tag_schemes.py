from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data.tag_schemes import WordSpan, iob2_of, spans_of, types_of
from cptuning.errors import CPTuningError


@st.composite
def sentences_with_spans(draw):
    """A number of words, and spans of them that don't overlap."""
    borders = sorted(draw(st.sets(st.integers(0, 12), max_size=8)))
    spans = []
    for start, stop in pairwise(borders):
        if draw(st.booleans()):
            spans.append(WordSpan(start, stop, draw(st.sampled_from(["PER", "LOC", "a-b"]))))
    return 12, spans


def in_iob1(spans, n):
    """B only where a span follows another of the same type at once."""
    tags = ["O"] * n
    for span in spans:
        tags[span.start : span.stop] = [f"I-{span.label}"] * (span.stop - span.start)
    for span in spans:
        if any(other.stop == span.start and other.label == span.label for other in spans):
            tags[span.start] = f"B-{span.label}"
    return tags


def in_bioes(spans, n, letters="BIES"):
    begin, inside, end, single = letters
    tags = ["O"] * n
    for span in spans:
        tags[span.start : span.stop] = [f"{inside}-{span.label}"] * (span.stop - span.start)
        tags[span.start] = f"{begin}-{span.label}"
        tags[span.stop - 1] = f"{end}-{span.label}"
        if span.stop - span.start == 1:
            tags[span.start] = f"{single}-{span.label}"
    return tags


@given(sentences_with_spans())
def test_every_scheme_gives_the_spans_that_it_was_written_for(case):
    n, spans = case
    assert spans_of(iob2_of(spans, n)) == spans
    assert spans_of(in_iob1(spans, n)) == spans
    assert spans_of(in_bioes(spans, n)) == spans
    assert spans_of(in_bioes(spans, n, letters="BILU")) == spans


@given(st.lists(st.sampled_from(["O", "B-a", "I-a", "E-a", "S-a", "B-b", "I-b", "E-b", "S-b"])))
def test_any_tags_give_spans_whose_own_tags_are_valid_and_mean_the_same(tags):
    spans = spans_of(tags)
    written = iob2_of(spans, len(tags))
    assert spans_of(written) == spans
    assert [tag == "O" for tag in written] == [tag == "O" for tag in tags]
    for before, tag in zip(["O", *written], written, strict=False):
        assert not tag.startswith("I-") or before[2:] == tag[2:]


@pytest.mark.parametrize("tag", ["PER", "B-", "B-  ", "X-PER", "", "b-PER", None, 3])
def test_what_is_no_tag_is_refused_with_its_place(tag):
    with pytest.raises(CPTuningError, match=r"train\.conll, word 2: the tag .* is neither O nor"):
        spans_of(["O", tag], "train.conll")


def test_types_are_sorted():
    assert types_of([spans_of(["B-b", "B-a"]), [], spans_of(["S-c"])]) == ["a", "b", "c"]
