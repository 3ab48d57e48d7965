"""What the model reads in pre-training."""

import numpy as np
import pytest
import torch

from pretraining.batches import IGNORED, NEXT, OTHER, RELATIONS, Drawer
from pretraining.tokens import Tokens
from pretraining.vocabulary import CLS, MASK, PAD, SEP, SPECIAL

WORDS = ["these", "are", ".", "?", ",", *sorted({w for r in RELATIONS.values() for w in r})]
VOCABULARY = {t: i for i, t in enumerate([*SPECIAL, *WORDS, *(f"w{i}" for i in range(480))])}
FIRST_WORD = len(SPECIAL) + len(WORDS)


@pytest.fixture(scope="module")
def tokens():
    """Forty documents of six sentences; a sentence is ten numbers that say which it is."""
    rng = np.random.default_rng(0)
    ids, starts, documents = [], [], []
    for document in range(40):
        for _ in range(6):
            starts.append(len(ids))
            documents.append(document)
            ids += rng.integers(FIRST_WORD, len(VOCABULARY), size=rng.integers(6, 14)).tolist()
        ids.append(SEP)
    return Tokens(np.array(ids, "u2"), np.array(starts), np.array(documents, "i4"))


def drawer(tokens, **changes):
    settings = {"device": "cpu", "seed": 3, "rate": 0.2} | changes
    return Drawer(tokens, VOCABULARY, **settings)


def restored(batch):
    """The ids before masking."""
    is_target = batch.targets != IGNORED
    safe = torch.where(is_target, batch.targets, batch.ids.gather(1, batch.columns))
    return batch.ids.scatter(1, batch.columns, safe)


def test_a_window_is_running_text_from_the_start_of_a_sentence(tokens):
    batch = drawer(tokens).windows(0, rows=50, length=32)
    text = " ".join(map(str, tokens.ids.tolist()))
    starts = {int(tokens.ids[s]) for s in tokens.starts}
    for row in restored(batch):
        assert (int(row[0]), int(row[-1])) == (CLS, SEP)
        assert " ".join(map(str, row[1:-1].tolist())) in text
    assert sum(int(row[1]) in starts for row in restored(batch)) >= 45  # the last may be moved back


def test_one_token_in_five_is_masked_and_never_a_special_one(tokens):
    batch = drawer(tokens).windows(0, rows=200, length=50)
    assert batch.columns.shape == (200, 10)
    assert (batch.targets >= len(SPECIAL)).all()
    inside = batch.ids.gather(1, batch.columns)
    assert abs(float((inside == MASK).float().mean()) - 0.8) < 0.04
    kept = float((inside == batch.targets).float().mean())
    assert abs(kept - 0.1) < 0.03


def test_the_same_step_draws_the_same_batch_and_another_step_another_one(tokens):
    a, b = drawer(tokens), drawer(tokens)
    a.windows(4, 8, 32)
    for kind in ("windows", "sentences"):
        assert getattr(a, kind)(5, 8, 64).ids.equal(getattr(b, kind)(5, 8, 64).ids)
        assert not getattr(a, kind)(5, 8, 64).ids.equal(getattr(b, kind)(6, 8, 64).ids)


def rows_of(tokens, rows=400):
    batch = drawer(tokens, rate=0.0).sentences(1, rows, 64)
    return batch, batch.ids, batch.types


def test_rows_of_sentences_are_padded_only_at_the_end(tokens):
    batch, ids, types = rows_of(tokens)
    for row, attended, kinds in zip(ids, batch.attended, types, strict=True):
        count = int(attended.sum())
        assert attended[:count].all()
        assert (row[count:] == PAD).all()
        assert not (row[:count] == PAD).any()
        assert (int(row[0]), int(row[count - 1])) == (CLS, SEP)
        assert (kinds[:-1] <= kinds[1:]).logical_or(~attended[1:]).all()


def test_half_the_rows_are_pairs_with_a_prompt_each(tokens):
    batch, ids, types = rows_of(tokens)
    pairs = (ids == MASK).any(1)
    assert 0.4 < float(pairs.float().mean()) < 0.6
    apart = (types == 1).any(1)
    assert not (apart & ~pairs).any()
    assert 0.6 < float(apart[pairs].float().mean()) < 0.9  # a quarter has no [SEP] between
    assert (((ids == SEP).sum(1) == 2) == apart).all()
    assert ((batch.targets[:, -1] != IGNORED) == pairs).all()
    assert (ids.gather(1, batch.columns[:, -1:])[pairs] == MASK).all()
    words = {v: k for k, v in VOCABULARY.items()}
    answers = {words[int(t)] for t in batch.targets[:, -1] if t != IGNORED}
    assert answers == {word for pair in RELATIONS.values() for word in pair}
    for row in ids[pairs]:
        said = " ".join(words[int(i)] for i in row)
        assert ("[SEP]" in said and "these are [MASK] . [SEP]" in said) != ("? [MASK] ," in said)


def parts(row, types):
    """The two texts of a pair, without prompt and special tokens."""
    text = row >= FIRST_WORD
    return row[text & (types == 0)].tolist(), row[text & (types == 1)].tolist()


def pairs_by_word(tokens):
    batch, ids, types = rows_of(tokens, rows=1500)
    words = {v: k for k, v in VOCABULARY.items()}
    found = {}
    for row, kinds, answer in zip(ids, types, batch.targets[:, -1], strict=True):
        if answer != IGNORED and kinds.any():
            found.setdefault(words[int(answer)], []).append(parts(row, kinds))
    return found


def test_the_words_say_how_the_second_text_comes_from_the_first(tokens):
    found = pairs_by_word(tokens)
    sentences = [
        tuple(tokens.ids[a:b][tokens.ids[a:b] != SEP].tolist())
        for a, b in zip(tokens.starts, [*tokens.starts[1:], len(tokens.ids)], strict=True)
    ]
    at = {s: i for i, s in enumerate(sentences)}
    document = tokens.documents
    for a, b in found["same"]:
        assert set(a) <= set(b) or set(b) <= set(a)
    for a, b in found["part"]:
        assert " ".join(map(str, b)) in " ".join(map(str, a))
        assert len(b) < len(a)
    for a, b in found["similar"]:
        assert set(a) - set(b) or set(b) - set(a)
        assert set(a) & set(b) or min(len(a), len(b)) < 4
    for a, b in found["connected"] + found["then"]:
        assert at[tuple(b)] == at[tuple(a)] + NEXT - 2
    for a, b in found["related"] + found["also"]:
        i, j = at[tuple(a)], at[tuple(b)]
        assert document[i] == document[j]
        assert abs(i - j) >= 2
    for a, b in found["different"]:
        assert tuple(a) in at
        assert tuple(b) in at
    apart = [document[at[tuple(a)]] != document[at[tuple(b)]] for a, b in found["different"]]
    assert np.mean(apart) > 0.9
    assert len(RELATIONS) - 1 == OTHER


def test_a_vocabulary_without_the_prompts_words_is_refused(tokens):
    with pytest.raises(ValueError, match="lacks similar"):
        Drawer(
            tokens, {k: v for k, v in VOCABULARY.items() if k != "similar"}, device="cpu", seed=0
        )
