"""The language of prompts: what a template means, and what is said of a wrong one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.errors import CPTuningError
from cptuning.prompting import Template
from cptuning.prompting.template import Mask, Prompts, Separator, Text, Words


def a(spaced=False, change=None):
    return Text("a", spaced, change)


def b(spaced=False, change=None):
    return Text("b", spaced, change)


MASK, SEP = Mask(), Separator()

PARSED = {
    # the paper's own two
    "{a} it is [MASK]": [a(), Words(" it is"), MASK],
    "{a} ? [MASK] {b}": [a(), Words(" ?"), MASK, SEP, b(spaced=True)],
    # PET's for sentiment
    "It was [MASK]. {a}": [Words("It was"), MASK, Words("."), a(spaced=True)],
    "{a}. All in all, it was [MASK].": [a(), Words(". All in all, it was"), MASK, Words(".")],
    "Just [MASK]! {a}": [Words("Just"), MASK, Words("!"), a(spaced=True)],
    "{a} In summary, the movie is [MASK].": [
        a(),
        Words(" In summary, the movie is"),
        MASK,
        Words("."),
    ],
    # PET's for topics
    "[MASK]: {a}": [MASK, Words(":"), a(spaced=True)],
    "[ Category: [MASK] ] {a}": [Words("[ Category:"), MASK, Words(" ]"), a(spaced=True)],
    # brackets that hold no mark
    "[ news ] {a} [1] [MASK] []": [
        Words("[ news ]"),
        a(spaced=True),
        Words(" [1]"),
        MASK,
        Words(" []"),
    ],
    # PET's for pairs: the border is before whichever text comes second
    "{a} ? [MASK] , {b}": [a(), Words(" ?"), MASK, Words(" ,"), SEP, b(spaced=True)],
    "{b} ? [MASK] , {a}": [b(), Words(" ?"), MASK, Words(" ,"), SEP, a(spaced=True)],
    '"{a}" ? [MASK], "{b}"': [
        Words('"'),
        a(),
        Words('" ?'),
        MASK,
        Words(', "'),
        SEP,
        b(),
        Words('"'),
    ],
    # a border of one's own
    "{a} ? [SEP] [MASK] , {b}": [a(), Words(" ?"), SEP, MASK, Words(" ,"), b(spaced=True)],
    "{a} [SEP] {b} these are [MASK] .": [
        a(),
        SEP,
        b(spaced=True),
        Words(" these are"),
        MASK,
        Words(" ."),
    ],
    "{a} [SEP] it is [MASK]": [a(), SEP, Words(" it is"), MASK],
    # LM-BFF's for pairs: one segment, the texts changed
    "{a}[MASK],[JOIN] {b:lowered}": [a(), MASK, Words(","), b(spaced=True, change="lowered")],
    "{a:chopped}? [MASK],[JOIN] {b}": [
        a(change="chopped"),
        Words("?"),
        MASK,
        Words(","),
        b(spaced=True),
    ],
    # trainable tokens without words
    "[PRO*2] {a} [PRO] it was [MASK]": [
        Prompts(2),
        a(spaced=True),
        Prompts(1),
        Words(" it was"),
        MASK,
    ],
    # the answer at [CLS]
    "[CLS] {a}": [a(spaced=True)],
    "[CLS] {a} [SEP] {b}": [a(spaced=True), SEP, b(spaced=True)],
    # no words at all, before or after
    "{a} [MASK]": [a(), MASK],
    "[MASK]{a}": [MASK, a()],
    "  {a}\n[MASK]  ": [a(spaced=True), MASK],
}


@pytest.mark.parametrize("source", PARSED)
def test_a_template_is_its_parts_in_order(source):
    template = Template.parse(source)
    assert list(template.parts) == PARSED[source]
    assert template.source == source


@pytest.mark.parametrize("source", PARSED)
def test_a_template_with_two_texts_is_for_pairs(source):
    assert Template.parse(source).is_pair == ("{b" in source)


WRONG = {
    "": "has no {a}",
    "it is [MASK]": "has no {a}",
    "{b} it is [MASK]": "has no {a}",
    "{a} {a} [MASK]": "names the same text twice",
    "{a} {b} ? [MASK] {b}": "names the same text twice",
    "{a} it is great": r"has no \[MASK\]",
    "{a} it is [mask]": r"has no \[MASK\]",
    "{a} [MASK] [MASK]": r"has 2 \[MASK\]s",
    "{a} [MASK] [SEP] [SEP] {b}": r"has more than one \[SEP\]",
    "{c} it is [MASK]": "names {c}: the only places for texts are {a} and {b}",
    "{A} it is [MASK]": "names {A}",
    "{a} {} [MASK]": "names {}",
    "{ a } it is [MASK]": "names { a }",
    "{a it is [MASK]": "has a lone brace",
    "{a} it is } [MASK]": "has a lone brace",
    "{{a}} it is [MASK]": "has a lone brace",
    "{a:loud} it is [MASK]": r"names {a:loud}: there are only {a:chopped} \(without its last",
    "{a:} it is [MASK]": "names {a:}",
    "{c:chopped} it is [MASK]": "names {c:chopped}: the only places",
    "{a} [PRO*0] [MASK]": "asks for 0",
    "{a} [PRO*99999] [MASK]": "asks for 99999",
    "{a} [JOIN] [MASK]": "has a .JOIN., which is for two texts",
    "{a} [JOIN] [SEP] [MASK] {b}": "has a .JOIN., which is for two texts",
    "{a} [CLS]": "at the very start",
    "[CLS] {a} [MASK]": "at the very start",
    "[CLS] [CLS] {a}": "at the very start",
    "{a} [FOO] [MASK]": r"has the mark \[FOO\]: there are only \[MASK\], \[SEP\], ",
    "[pro*3] {a} [MASK]": r"has the mark \[pro\*3\]",
    "{a} [PRO*] [MASK]": r"has the mark \[PRO\*\]",
    "{a} it [PRO*-1] is [MASK]": r"has the mark \[PRO\*-1\]",
    "{a} [MASK] [sep] {b}": r"has the mark \[sep\]",
}


@pytest.mark.parametrize("source", WRONG)
def test_a_mistake_is_named_with_the_template_it_is_in(source):
    with pytest.raises(CPTuningError, match=WRONG[source]) as caught:
        Template.parse(source)
    assert repr(source) in str(caught.value)


MARKS = ["{a}", "{b}", "[MASK]", "[SEP]", "[CLS]", "[JOIN]", "[PRO]"]
PIECES = st.sampled_from([*MARKS, " ", "it is", ".", "{", "}", "[", "é\n"])


@given(st.lists(PIECES, max_size=8).map("".join) | st.text())
def test_any_string_is_a_template_or_a_mistake(source):
    try:
        parts = Template.parse(source).parts
    except CPTuningError:
        return
    assert parts.count(MASK) == (0 if source.startswith("[CLS]") else 1)
    assert sum(isinstance(part, Separator) for part in parts) <= 1
    texts = [i for i, part in enumerate(parts) if isinstance(part, Text)]
    assert len(texts) in (1, 2)
    if len(texts) == 2:
        assert (SEP in parts) != ("[JOIN]" in source)
    # No word of the template is lost.
    words = "".join(part.text for part in parts if isinstance(part, Words))
    rest = source
    for mark in MARKS:
        rest = rest.replace(mark, "")
    assert "".join(words.split()) == "".join(rest.split())


def test_a_changed_text_loses_its_last_character_or_its_first_capital():
    assert Text("a", spaced=False, change="chopped").of("Is it red?") == "Is it red"
    assert Text("b", spaced=True, change="lowered").of("The Red Train.") == "the Red Train."
    for change in (None, "chopped", "lowered"):
        assert Text("a", spaced=False, change=change).of("") == ""
