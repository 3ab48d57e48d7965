from cptuning.backbone import layout_for, load_backbone
from cptuning.data import as_examples
from cptuning.prompting import LaidOut, Template

TEXTS = ["a fine film", "dull", "the best of the year", "not for me"]


def same(one, other):
    return one.ids.tolist() == other.ids.tolist() and one.output == other.output


def test_encodings_made_when_wanted_are_those_made_at_once(tiny):
    layout = layout_for(load_backbone(tiny("bert")), Template.parse("{a} it is [MASK]"), 64)
    examples = as_examples(TEXTS)
    expected = layout.encode(examples)
    for laid_out in (LaidOut(layout, examples), LaidOut(layout, examples, most_kept=1)):
        assert len(laid_out) == len(TEXTS)
        assert all(same(*both) for both in zip(laid_out, expected, strict=True))
        assert all(same(*both) for both in zip(laid_out[1:3], expected[1:3], strict=True))
        assert same(laid_out[-1], expected[-1])


def test_many_are_not_kept(tiny):
    layout = layout_for(load_backbone(tiny("bert")), Template.parse("{a} it is [MASK]"), 64)
    many, few = LaidOut(layout, as_examples(TEXTS), 3), LaidOut(layout, as_examples(TEXTS), 4)
    assert many[0] is not many[0]
    assert few[0] is few[0]
