"""Where each token stands, for the four kinds of tokenizers, and what long or odd texts do."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiny import tiny_tokenizer
from tokenizers import Tokenizer

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.prompting import Layout, SpecialTokens, Template
from cptuning.prompting import layout as layout_module
from cptuning.prompting.layout import shares

KINDS = ("bert", "roberta", "albert", "modernbert")
SINGLE, PAIR = "{a} it is [MASK]", "{a} ? [MASK] {b}"
every_kind = pytest.mark.parametrize("kind", KINDS)

tokenizer_of = cache(tiny_tokenizer)


def special_of(kind):
    tokenizer = tokenizer_of(kind)
    return SpecialTokens.of(
        tokenizer.backend_tokenizer, tokenizer.mask_token_id, tokenizer.pad_token_id
    )


@cache
def layout_of(kind, template=SINGLE, max_length=64):
    """A layout whose model has three rows more than its tokenizer has tokens, as some do."""
    tokenizer = tokenizer_of(kind)
    return Layout(
        tokenizer.backend_tokenizer,
        special_of(kind),
        Template.parse(template),
        vocabulary=len(tokenizer) + 3,
        max_length=max_length,
    )


def encode(layout, first, second=None):
    return layout.encode(Examples((first,), None if second is None else (second,)))[0]


def tokens(layout, encoding, tokenizer):
    """The sequence in words: a prompt vector is shown as PRO and the token it was copied from."""
    names = tokenizer.convert_ids_to_tokens
    return [
        names(int(i))
        if i < layout.vocabulary
        else f"PRO {names(int(layout.prompt_ids[i - layout.vocabulary]))}"
        for i in encoding.ids
    ]


def shown(kind, template, first, second=None):
    layout = layout_of(kind, template)
    return tokens(layout, encode(layout, first, second), tokenizer_of(kind))


# The sequences of the paper's example table.


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("bert", "[CLS]|the|movie|was|great|PRO it|PRO is|[MASK]|[SEP]"),
        ("roberta", "<s>|the|Ġmovie|Ġwas|Ġgreat|PRO Ġit|PRO Ġis|<mask>|</s>"),
        ("modernbert", "[CLS]|the|Ġmovie|Ġwas|Ġgreat|PRO Ġit|PRO Ġis|[MASK]|[SEP]"),
    ],
)
def test_one_text_is_followed_by_the_prompt_and_the_output_mask(kind, expected):
    assert shown(kind, SINGLE, "the movie was great") == expected.split("|")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("bert", "[CLS]|is|it|red|?|PRO ?|[MASK]|[SEP]|the|train|is|red|.|[SEP]"),
        ("roberta", "<s>|is|Ġit|Ġred|?|PRO Ġ?|<mask>|</s>|</s>|the|Ġtrain|Ġis|Ġred|.|</s>"),
        ("modernbert", "[CLS]|is|Ġit|Ġred|?|PRO Ġ?|[MASK]|[SEP]|the|Ġtrain|Ġis|Ġred|.|[SEP]"),
    ],
)
def test_prompt_and_output_mask_stand_between_the_texts_of_a_pair(kind, expected):
    assert shown(kind, PAIR, "is it red?", "the train is red.") == expected.split("|")


def test_the_same_for_pieces_of_words():
    pieces = tokenizer_of("albert").tokenize
    prompt = [f"PRO {piece}" for piece in pieces("it is")]
    assert shown("albert", SINGLE, "the movie was great") == [
        *["[CLS]", *pieces("the movie was great"), *prompt, "[MASK]", "[SEP]"]
    ]
    question = [f"PRO {piece}" for piece in pieces("?")]
    assert shown("albert", PAIR, "is it red?", "the train is red.") == [
        *["[CLS]", *pieces("is it red?"), *question, "[MASK]", "[SEP]"],
        *[*pieces("the train is red."), "[SEP]"],
    ]


def test_words_after_the_mask_are_prompts_too():
    assert shown("bert", "It was [MASK] . {a}", "just great") == (
        ["[CLS]", "PRO it", "PRO was", "[MASK]", "PRO .", "just", "great", "[SEP]"]
    )


def test_a_separator_stands_where_the_template_puts_it():
    pair = "{a} [SEP] {b} these are [MASK] ."
    assert shown("roberta", pair, "the movie", "the book") == (
        [
            "<s>",
            "the",
            "Ġmovie",
            "</s>",
            "</s>",
            "the",
            "Ġbook",
            "PRO Ġthese",
            "PRO Ġare",
            "<mask>",
            "PRO Ġ.",
            "</s>",
        ]
    )
    assert shown("bert", "{a} [SEP] it is [MASK]", "great") == (
        ["[CLS]", "great", "[SEP]", "PRO it", "PRO is", "[MASK]", "[SEP]"]
    )


# What the four kinds have in common.

PATTERNS = (
    SINGLE,
    PAIR,
    "{a} it is so [MASK] .",
    "It was [MASK] . {a}",
    "{b} ? [MASK] , {a}",
    "{a} ? [SEP] [MASK] , {b}",
    "{a} [SEP] {b} these are [MASK] .",
    "Just [MASK] ! {a}",
    "  It was [MASK] . {a}",
    "{a} [SEP] it is [MASK]",
)
# A tokenizer of SentencePiece's kind puts a space before any piece of text that it is given.
TIGHT_PATTERNS = (
    "It was [MASK]. {a}",
    "{a}. All in all, it was [MASK].",
    "{a}? [MASK], {b}",
    '"{a}" ? [MASK], "{b}"',
    "[MASK]: {a}",
    "({a}) [MASK]",
)
RUNNING = [(kind, pattern) for kind in KINDS for pattern in PATTERNS]
RUNNING += [(kind, pattern) for kind in KINDS if kind != "albert" for pattern in TIGHT_PATTERNS]


@pytest.mark.parametrize(("kind", "pattern"), RUNNING)
@pytest.mark.parametrize(
    ("first", "second"), [("the movie was great", "it is dull"), ("Great food", "Is it cold")]
)
def test_tokens_are_those_of_the_filled_in_template_as_running_text(kind, pattern, first, second):
    template, tokenizer = Template.parse(pattern), tokenizer_of(kind)
    layout = layout_of(kind, pattern)
    encoding = encode(layout, first, second if template.is_pair else None)
    prompts = encoding.ids >= layout.vocabulary
    encoding.ids[prompts] = layout.prompt_ids[encoding.ids[prompts] - layout.vocabulary]
    if "[SEP]" not in pattern and template.is_pair:
        last = max("{a}", "{b}", key=pattern.index)
        pattern = pattern.replace(last, "[SEP]" + last)
    filled = pattern.replace("[MASK]", tokenizer.mask_token)
    filled = filled.replace("{a}", first).replace("{b}", second)
    segments = [part.strip() for part in filled.split("[SEP]")]
    assert encoding.ids.tolist() == tokenizer(*segments)["input_ids"]


@every_kind
def test_prompts_are_numbered_past_the_vocabulary_in_the_order_of_the_words(kind):
    layout = layout_of(kind, "It was [MASK] . {a}")
    encoding = encode(layout, "great")
    prompts = encoding.ids[encoding.ids >= layout.vocabulary]
    n = len(layout.prompt_ids)
    assert prompts.tolist() == list(range(layout.vocabulary, layout.vocabulary + n))
    assert layout.prompt_ids.tolist() == tokenizer_of(kind).convert_tokens_to_ids(
        [*tokenizer_of(kind).tokenize("It was"), *tokenizer_of(kind).tokenize(" .")]
    )


@every_kind
def test_token_types_change_after_the_border(kind):
    assert set(encode(layout_of(kind), "great").types.tolist()) == {0}
    encoding = encode(layout_of(kind, PAIR), "great", "dull")
    border = encoding.types.tolist().index(1)
    assert set(encoding.types[border:].tolist()) == {1}
    between = special_of(kind).between
    assert tuple(encoding.ids[border - len(between) : border].tolist()) == between
    assert encoding.output < border


@every_kind
def test_only_text_tokens_are_marked_as_text(kind):
    layout, tokenizer = layout_of(kind, PAIR), tokenizer_of(kind)
    encoding = encode(layout, "is it red?", "the train")
    texts = tokenizer.tokenize("is it red?") + tokenizer.tokenize("the train")
    assert tokenizer.convert_ids_to_tokens(encoding.ids[encoding.is_text].tolist()) == texts


@every_kind
def test_the_output_position_holds_the_mask(kind):
    for template in (SINGLE, "It was [MASK] . {a}"):
        encoding = encode(layout_of(kind, template), "the movie was great")
        assert encoding.ids[encoding.output] == tokenizer_of(kind).mask_token_id
        assert not encoding.is_text[encoding.output]


# The special tokens of a tokenizer.


@pytest.mark.parametrize(
    ("kind", "prefix", "between", "suffix"),
    [
        ("bert", ["[CLS]"], ["[SEP]"], ["[SEP]"]),
        ("roberta", ["<s>"], ["</s>", "</s>"], ["</s>"]),
        ("albert", ["[CLS]"], ["[SEP]"], ["[SEP]"]),
        ("modernbert", ["[CLS]"], ["[SEP]"], ["[SEP]"]),
    ],
)
def test_special_tokens_are_read_off_the_tokenizer(kind, prefix, between, suffix):
    special, ids = special_of(kind), tokenizer_of(kind).convert_tokens_to_ids
    assert (special.prefix, special.between, special.suffix) == (
        tuple(ids(prefix)),
        tuple(ids(between)),
        tuple(ids(suffix)),
    )


@every_kind
def test_special_tokens_survive_json(kind):
    special = special_of(kind)
    assert SpecialTokens.from_json(special.to_json()) == special


@every_kind
def test_padding_and_truncation_stored_with_a_tokenizer_play_no_part(kind):
    given_one = Tokenizer.from_str(tokenizer_of(kind).backend_tokenizer.to_str())
    given_one.enable_padding(length=32)
    given_one.enable_truncation(8)
    before = given_one.to_str()
    special = special_of(kind)
    assert SpecialTokens.of(given_one, special.mask, special.pad) == special
    layout = Layout(
        given_one,
        special,
        Template.parse(SINGLE),
        vocabulary=len(tokenizer_of(kind)) + 3,
        max_length=64,
    )
    text = "the movie was great and the food was cold and the book was dull"
    np.testing.assert_array_equal(encode(layout, text).ids, encode(layout_of(kind), text).ids)
    assert given_one.to_str() == before
    assert given_one.encode_special_tokens is False


@every_kind
def test_a_layout_with_the_saved_tokenizer_is_the_same(kind, tmp_path):
    layout = layout_of(kind)
    layout.save_tokenizer(tmp_path / "tokenizer.json")
    saved = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert saved.get_vocab() == tokenizer_of(kind).backend_tokenizer.get_vocab()
    again = Layout(
        saved, layout.special, layout.template, vocabulary=layout.vocabulary, max_length=64
    )
    for text in ("the movie was great", "[MASK] <mask> </s>", "é😀"):
        np.testing.assert_array_equal(encode(again, text).ids, encode(layout, text).ids)


# Truncation.


def one_by_one(room, a, b):
    """Take the last token of the longer text until both fit."""
    while a + b > room:
        a, b = (a - 1, b) if a > b else (a, b - 1)
    return a, b


LENGTHS = st.integers(0, 40)


@given(room=st.integers(1, 60), a=LENGTHS, b=LENGTHS)
def test_shares_are_those_of_taking_one_token_after_another_from_the_longer(room, a, b):
    kept = shares(room, {"a": a, "b": b})
    assert kept["a"] <= a
    assert kept["b"] <= b
    # Up to which of two equally long texts keeps the last token.
    assert sorted(kept.values()) == sorted(one_by_one(room, a, b))
    assert shares(room, {"a": a}) == {"a": min(a, room)}


WORDS = st.lists(st.sampled_from(["great", "dull", "the", "movie", "?", "trains"]), max_size=30)


@every_kind
@given(data=st.data(), words=st.tuples(WORDS, WORDS), pattern=st.sampled_from(PATTERNS))
@settings(max_examples=60)
def test_truncation_takes_the_ends_of_the_texts_and_nothing_else(kind, data, words, pattern):
    pair = Template.parse(pattern).is_pair
    first, second = (" ".join(some) for some in words)
    texts = (first, second) if pair else (first,)
    whole = encode(layout_of(kind, pattern, 100_000), *texts)
    fixed = int((~whole.is_text).sum())
    max_length = data.draw(st.integers(fixed + 1, fixed + 40))
    cut = encode(layout_of(kind, pattern, max_length), *texts)

    assert len(cut) == min(len(whole), max_length)
    assert cut.ids[cut.output] == special_of(kind).mask
    assert cut.shortened == (len(whole) > max_length)
    np.testing.assert_array_equal(cut.ids[~cut.is_text], whole.ids[~whole.is_text])
    np.testing.assert_array_equal(cut.types[~cut.is_text], whole.types[~whole.is_text])

    left = cut.ids[cut.is_text].tolist()
    room = max_length - fixed
    if not pair:
        assert left == whole.ids[whole.is_text].tolist()[:room]
        return
    a, b = (
        alone.ids[alone.is_text].tolist()
        for alone in (
            encode(layout_of(kind, pattern, 100_000), first, ""),
            encode(layout_of(kind, pattern, 100_000), "", second),
        )
    )
    before, after = (a, b) if pattern.index("{a}") < pattern.index("{b}") else (b, a)
    kept = one_by_one(room, len(before), len(after))
    assert left in (before[:m] + after[:n] for m, n in (kept, kept[::-1]))


@every_kind
def test_one_text_token_is_the_least(kind):
    fixed = int((~encode(layout_of(kind), "great").is_text).sum())
    assert encode(layout_of(kind, SINGLE, fixed + 1), "the movie was great").is_text.sum() == 1
    with pytest.raises(
        CPTuningError, match=f"max_length={fixed} leaves no room for text beside the {fixed} tokens"
    ):
        layout_of(kind, SINGLE, fixed)


# Odd texts.

NAMES = ("[MASK]", "[SEP]", "[CLS]", "[PAD]", "[UNK]", "<mask>", "</s>", "<s>", "<pad>", "<unk>")


@every_kind
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["{}", "write {} or", "great{}great", " {} {}", "{}{}"])
def test_a_special_token_written_in_a_text_is_ordinary_text(kind, name, text):
    tokenizer = tokenizer_of(kind)
    encoding = encode(layout_of(kind), text.replace("{}", name))
    inside = set(encoding.ids[encoding.is_text].tolist())
    assert inside
    assert not inside & (set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})
    spelled = tokenizer.convert_ids_to_tokens(encoding.ids[encoding.is_text].tolist())
    if tokenizer.unk_token not in spelled:
        letters = "".join(spelled).replace("##", "").strip("▁Ġ").lower()
        assert name.lower() in letters


@every_kind
@given(
    st.lists(
        st.sampled_from([*NAMES, " ", "great", "▁", "\0", "é", "\u2028"])
        | st.characters(exclude_categories=["Cs"])
    ).map("".join)
)
@settings(max_examples=100)
def test_no_text_whatever_brings_a_special_token_in(kind, text):
    tokenizer = tokenizer_of(kind)
    encoding = encode(layout_of(kind, SINGLE, 4096), text)
    inside = set(encoding.ids[encoding.is_text].tolist())
    assert not inside & (set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})
    assert encoding.ids[encoding.output] == tokenizer.mask_token_id


@every_kind
def test_an_empty_text_leaves_the_prompt_alone(kind):
    for template in (SINGLE, "It was [MASK] . {a}"):
        encoding = encode(layout_of(kind, template), "")
        assert not encoding.is_text.any()
        assert encoding.ids[encoding.output] == special_of(kind).mask
    pair = encode(layout_of(kind, PAIR), "", "")
    assert not pair.is_text.any()
    assert not pair.shortened


@every_kind
@pytest.mark.parametrize("unit", ["the movie was great ", "x", "😀", "?"])
def test_a_text_of_a_megabyte_is_cut(kind, unit):
    text = unit * (1_000_000 // len(unit.encode()))
    encoding = encode(layout_of(kind, PAIR), text, "yes")
    assert len(encoding) <= 64
    assert encoding.ids[encoding.output] == special_of(kind).mask


@every_kind
@pytest.mark.parametrize(
    "text",
    [
        "😀 👩‍👩‍👧",
        "nul \0 inside",
        "שלום עולם",
        "مرحبا",
        "e\u0301\u200b\ufeff",
        "\n\t \r\n",
        "日本語",
    ],
)
def test_texts_in_any_script_are_laid_out(kind, text):
    encoding = encode(layout_of(kind), text)
    assert encoding.ids[encoding.output] == special_of(kind).mask
    assert encoding.ids.max() < layout_of(kind).vocabulary + len(layout_of(kind).prompt_ids)


@every_kind
def test_examples_keep_their_order_and_do_not_depend_on_each_other(kind):
    texts = ("great", "the movie was dull and long", "", "is it red?")
    together = layout_of(kind).encode(Examples(texts))
    for text, encoding in zip(texts, together, strict=True):
        np.testing.assert_array_equal(encoding.ids, encode(layout_of(kind), text).ids)


def test_the_same_texts_are_tokenized_once_unless_they_are_long(monkeypatch):
    tokenized = []
    plain = layout_module._ids_of

    def ids_of(tokenizer, texts):
        tokenized.append(texts)
        return plain(tokenizer, texts)

    monkeypatch.setattr(layout_module, "_ids_of", ids_of)
    layout_module._remembered_ids.cache_clear()
    few, other = Examples(("good film", "bad film")), Examples(("good film", "bad"))
    # Another layout of the same tokenizer, as another run of a sweep makes it.
    first, second = (layout_of.__wrapped__("bert").encode(few) for _ in range(2))
    assert len(tokenized) == 1
    assert [one.ids.tolist() for one in first] == [one.ids.tolist() for one in second]
    layout_of("bert").encode(other)
    layout_of("roberta").encode(few)
    layout_of("bert", "it is [MASK] {a}").encode(few)  # with a space before the text
    assert len(tokenized) == 4
    long = Examples(("film " * 200_000,))
    for _ in range(2):
        layout_of("bert").encode(long)
    assert len(tokenized) == 6


def test_pairs_and_single_texts_each_need_a_template_of_their_kind():
    with pytest.raises(CPTuningError, match=r"'\{a\} it is \[MASK\]' is for single texts"):
        encode(layout_of("bert", SINGLE), "a", "b")
    with pytest.raises(CPTuningError, match=r"'\{a\} \? \[MASK\] \{b\}' is for pairs of texts"):
        encode(layout_of("bert", PAIR), "a")


def plain_layout(kind, template, **options):
    tokenizer = tokenizer_of(kind)
    return Layout(
        tokenizer.backend_tokenizer,
        special_of(kind),
        Template.parse(template),
        vocabulary=len(tokenizer) + 3,
        max_length=64,
        **options,
    )


@every_kind
def test_words_that_are_not_trainable_are_ordinary_tokens(kind):
    template = "{a} it is [MASK]"
    fixed = plain_layout(kind, template, trainable_words=False)
    trainable = layout_of(kind, template)
    assert len(fixed.prompt_ids) == 0
    assert fixed.word_ids == trainable.prompt_ids.tolist()
    ids = encode(fixed, "yes").ids
    assert ids.max() < fixed.vocabulary
    expected = [
        trainable.prompt_ids[i - trainable.vocabulary] if i >= trainable.vocabulary else i
        for i in encode(trainable, "yes").ids
    ]
    assert ids.tolist() == expected


@every_kind
def test_prompts_without_words_start_from_the_mask(kind):
    layout = plain_layout(kind, "[PRO*2] {a} it [PRO] [MASK]", trainable_words=False)
    assert layout.prompt_ids.tolist() == [layout.special.mask] * 3
    ids = encode(layout, "yes").ids.tolist()
    prompts = [i - layout.vocabulary for i in ids if i >= layout.vocabulary]
    assert prompts == [0, 1, 2]
    assert ids.index(layout.vocabulary) == len(layout.special.prefix)


@every_kind
def test_several_masks_stand_in_a_row_and_can_be_left_out(kind):
    three = encode(plain_layout(kind, SINGLE, masks=3), "the movie")
    one = encode(layout_of(kind), "the movie")
    mask = special_of(kind).mask
    assert three.ids[three.output : three.output + 3].tolist() == [mask] * 3
    trimmed = three.without(three.output + 1, three.output + 3)
    assert trimmed.ids.tolist() == one.ids.tolist()
    assert trimmed.is_text.tolist() == one.is_text.tolist()


@every_kind
def test_masks_and_fixed_words_are_never_cut(kind):
    layout = plain_layout(kind, "{a} it is so [MASK] .", trainable_words=False, masks=4)
    encoding = encode(layout, "great movie " * 100)
    assert len(encoding) == 64
    assert (encoding.ids == layout.special.mask).sum() == 4


@every_kind
def test_a_template_of_cls_answers_at_the_opening_token(kind):
    layout = plain_layout(kind, "[CLS] {a} [SEP] {b}", trainable_words=False)
    tokenizer = tokenizer_of(kind)
    encoding = encode(layout, "is it red?", "the train is red.")
    assert encoding.output == 0
    assert encoding.ids.tolist() == tokenizer("is it red?", "the train is red.")["input_ids"]


@every_kind
def test_joined_texts_are_one_segment(kind):
    layout = plain_layout(kind, "{a:chopped}? [MASK],[JOIN] {b:lowered}", trainable_words=False)
    encoding = encode(layout, "is it red!", "The train is red.")
    assert not encoding.types.any()
    plain = plain_layout(kind, "{a}? [MASK], {b}", trainable_words=False)
    assert len(encoding) == len(encode(plain, "is it red", "the train is red.")) - len(
        layout.special.between
    )
