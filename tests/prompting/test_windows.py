"""Long texts in windows: all of a text is read, in equal windows that overlap, and no more."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.backbone.packed import PackedBackbone
from cptuning.backbone.text_layout import layout_for
from cptuning.data import Examples
from cptuning.prompting import Template, all_windows, drawn_windows, pooled, windows_of
from cptuning.prompting.layout import window_starts


def layout(windows=8, max_length=24, prefix="", template="{a} it is [MASK] ."):
    parsed = Template.parse(template, needs_output=True)
    return layout_for(PackedBackbone(), parsed, max_length, text_prefix=prefix, windows=windows)


WORDS = [f"{word}{n}" for n in range(40) for word in ("red", "blue ", "green")]
LONG = " ".join(WORDS[:60])


@given(n=st.integers(1, 500), room=st.integers(1, 40), most=st.integers(2, 12))
def test_windows_cover_a_text_from_its_start_and_overlap_by_a_quarter(n, room, most):
    if n <= room:
        return
    starts = window_starts(n, room, most)
    steps = np.diff(starts)
    assert starts[0] == 0
    assert 1 < len(starts) <= most
    assert (steps >= 0).all()
    assert (steps <= room - room // 4).all()
    assert starts[-1] + room <= n
    # Either all is read, or there are as many windows as may be.
    assert starts[-1] + room == n or len(starts) == most
    # No more windows than it takes.
    step = room - room // 4
    assert room + (len(starts) - 2) * step < n


def test_a_text_that_fits_is_laid_out_as_ever():
    texts = Examples(("a short text", "", LONG))
    windowed, cut = layout().encode(texts), layout(windows=1).encode(texts)
    for one, other in zip(windowed[:2], cut[:2], strict=True):
        assert one.key == other.key
        assert one.windows == ()
    assert cut[2].windows == ()
    assert cut[2].shortened
    assert windowed[2].key == cut[2].key  # The first window is what truncation reads.


@pytest.mark.parametrize("prefix", ["", "query: "])
def test_every_token_of_a_long_text_is_read_in_windows_with_the_whole_prompt(prefix):
    long = layout(windows=30, prefix=prefix)
    [encoding] = long.encode(Examples((LONG,)))
    whole = long.token_ids(prefix + LONG, opening=True)
    windows = windows_of(encoding)
    assert not encoding.shortened
    assert {len(window) for window in windows} == {24}
    read = [window.ids[window.is_text].tolist() for window in windows]
    head = read[0][: len(long.token_ids(prefix, opening=True))] if prefix else []
    assert all(ids[: len(head)] == head for ids in read)
    place = len(head)
    for ids in read:
        body = ids[len(head) :]
        start = next(
            s
            for s in range(place + 1)
            if whole[s : s + len(body)] == body and s + len(body) >= place
        )
        place = max(place, start + len(body))
    assert place == len(whole)
    for window in windows:
        prompt = window.ids[~window.is_text].tolist()
        assert prompt == windows[0].ids[~windows[0].is_text].tolist()
        assert window.ids[window.output] == long.special.mask


def test_what_is_behind_the_last_window_is_not_read_and_that_is_known():
    [encoding] = layout(windows=3).encode(Examples((LONG,)))
    assert len(encoding.windows) == 2
    assert encoding.shortened


def test_passages_are_the_windows_in_the_words_of_the_text():
    it = layout(windows=30)
    passages = it.passages(LONG)
    [encoding] = it.encode(Examples((LONG,)))
    assert len(passages) == 1 + len(encoding.windows)
    assert all(passage in LONG for passage in passages)
    assert passages[0].startswith(WORDS[0])
    assert passages[-1].endswith(WORDS[59].strip())
    words = set(LONG.split())
    assert all(word in words for passage in passages for word in passage.split())
    assert set().union(*(passage.split() for passage in passages)) == words
    assert it.passages("a short text") == ["a short text"]


def test_windows_are_pooled_with_equal_weights():
    encodings = layout().encode(Examples(("short", LONG, "", LONG)))
    windows, first = all_windows(encodings)
    rng = np.random.default_rng(0)
    read = rng.normal(size=(len(windows), 2, 3)).astype(np.float32)
    place, expected = 0, []
    for encoding in encodings:
        n = len(windows_of(encoding))
        expected.append(read[place : place + n].mean(axis=0))
        place += n
    np.testing.assert_allclose(pooled(read, first), expected, rtol=1e-5)
    assert all_windows([])[0] == []


def test_a_step_draws_one_window_by_its_seed():
    encodings = layout().encode(Examples((LONG, "short")))
    seen = set()
    for step in range(60):
        seeds = [[0, step, row] for row in range(2)]
        drawn, again = drawn_windows(encodings, seeds), drawn_windows(encodings, seeds)
        assert [d.key for d in drawn] == [a.key for a in again]
        assert all(d.windows == () for d in drawn)
        assert drawn[1].key == encodings[1].key
        seen.add(drawn[0].key)
    assert seen == {window.key for window in windows_of(encodings[0])}
