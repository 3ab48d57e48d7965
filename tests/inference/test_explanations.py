"""Reasons are read as a table: two decimals in a terminal, HTML in a notebook."""

import numpy as np
from tests.reporting.conftest import circle_predictor

from cptuning.data import Examples
from cptuning.inference import Evidence, Explanations, Reasons

EVIL = "<script>alert('x')</script>"


def test_answers_and_their_reasons_are_one_table_per_text():
    explained = circle_predictor().explain(["80 a", "10 b"], k=1)
    confidence = circle_predictor().predict_proba(["80 a", "10 b"]).max(axis=1)
    assert repr(explained).splitlines() == [
        "80 a",
        f"  north ({100 * confidence[0]:.1f} %), because it is similar to",
        f"     {np.cos(np.radians(10)):.2f}  north  90 is north",
        "",
        "10 b",
        f"  east ({100 * confidence[1]:.1f} %), because it is similar to",
        f"     {np.cos(np.radians(10)):.2f}  east  0 is east",
    ]


def test_it_is_still_a_list_of_evidence_with_every_digit():
    [reasons] = circle_predictor().explain(["80 a"], k=2)
    assert [example.label for example in reasons] == ["north"]
    assert reasons[0].similarity == np.float64(np.float32(np.cos(np.radians(80 - 90))))


def test_an_unknown_text_has_no_probability():
    explained = circle_predictor(unknown_threshold=0.99).explain(["45 a"], k=1)
    assert explained.labels == ["unknown"]
    assert "unknown; the nearest examples are" in repr(explained)
    assert "%" not in explained._repr_html_()


def test_a_notebook_shows_texts_and_labels_as_they_are():
    near, nearer = Evidence(("a", EVIL), "<b>", 0.8123), Evidence("c", "d", 0.9)
    html = Explanations(
        [Reasons([near], against=nearer)], Examples((EVIL,)), ["<b>"], [0.5]
    )._repr_html_()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 2
    assert "<td>0.81</td><td>&lt;b&gt;</td>" in html
    assert html.index("although this is even nearer") < html.index("<td>0.90</td>")
    assert html.count("<tr>") == html.count("</tr>") == 4
