"""The report says what matters, fetches nothing, and shows texts as texts."""

import csv
import re
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pytest
from tests.reporting.conftest import CircleEncoder, circle_predictor

from cptuning.data import Examples, LabelSpace
from cptuning.inference import EmbeddingPredictor, SupportSet
from cptuning.reporting import Evaluation, report_html
from cptuning.reporting.evaluation_report import errors_csv, verdict

EVIL = "<script>alert('x')</script>"


class Outline(HTMLParser):
    """Collects the tags, the attributes and the text of a page; and that every tag is closed."""

    VOID = ("meta", "br", "img", "path", "use", "image", "rect", "link", "input")

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.open, self.text = [], [], [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def evaluation(predictor):
    texts = Examples((f"80 {EVIL}", "10 fine", "-70 fine", "20 & so on"))
    return Evaluation.of(predictor, texts, ["east", "east", "south", "east"])


@pytest.fixture
def html(evaluation, facts):
    return report_html(evaluation, facts, model="shop", test="test.csv")


def test_the_headline_gives_accuracy_interval_and_baseline(html, evaluation):
    text = Outline(html).text
    low, high = evaluation.interval
    assert "75.0 %" in text
    assert f"{100 * low:.1f} to {100 * high:.1f} %" in text
    assert "majority baseline" in text
    assert "calibration error" in text


def test_every_part_is_there(html):
    outline = Outline(html)
    for title in (
        "Results by class",
        "Confusion matrix",
        "Is its confidence reliable?",
        "Map of the texts (PCA)",
        "Most confident errors",
        "How it was trained",
    ):
        assert title in outline.text
    assert outline.tags.count("svg") == 3


def test_every_tag_is_closed(html):
    assert Outline(html).open == []


def test_nothing_is_fetched_and_nothing_of_a_text_is_run(html):
    outline = Outline(html)
    assert not {"link", "iframe", "object"} & set(outline.tags)
    assert outline.tags.count("script") == 1  # the filter, the only one that the policy allows
    assert re.search(r"script-src 'sha256-[^']+'\"", html)
    for name, value in outline.attributes:
        assert not name.startswith("on")
        if name in ("src", "href", "xlink:href"):
            assert value.startswith(("#", "data:"))
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)


def test_texts_classes_and_names_are_shown_not_interpreted(facts):
    predictor = circle_predictor(classes=(f"{EVIL}one", f"{EVIL}two"))
    evaluation = Evaluation.of(predictor, Examples((f"0 {EVIL}",)), [f"{EVIL}two"])
    facts["parameters"]["backbone"] = facts["layout"]["template"] = EVIL
    html = report_html(evaluation, facts, model=f"{EVIL}model", test=f"{EVIL}test")
    assert html.count("<script") == 1
    assert EVIL not in html
    assert Outline(html).text.count(EVIL) > 10


def test_what_is_nearer_than_the_reasons_of_a_wrong_answer_is_shown_too(facts):
    # East is a direction between -40 and 50 degrees: 40 is east's, though 38 is south's.
    known = Examples(("-40 e", "50 e", "38 s", "-90 s", "-95 s"))
    support = SupportSet(known, CircleEncoder().embed(known), np.array([0, 0, 1, 1, 1]))
    space = LabelSpace(("east", "south"))
    predictor = EmbeddingPredictor(CircleEncoder(), support, space, "unit-prototype", 1, 0.5)
    evaluation = Evaluation.of(predictor, Examples(("37 x",)), ["south"])
    text = Outline(report_html(evaluation, facts, model="m", test="t")).text
    mistakes = text[text.index("Most confident errors") :]
    assert mistakes.index("50 e") < mistakes.index("although this is even nearer")
    assert mistakes.index("although this is even nearer") < mistakes.index("38 s")


def test_a_wrong_answer_is_shown_with_its_nearest_examples(html):
    text = Outline(html).text
    mistakes = text[text.index("Most confident errors") :]
    assert EVIL in mistakes
    assert "90 is north" in mistakes


def test_labels_that_the_model_does_not_know_are_named(predictor, facts):
    evaluation = Evaluation.of(predictor, Examples(("80 a",)), ["<west>"])
    text = Outline(report_html(evaluation, facts, model="m", test="t")).text
    assert "does not know the label" in text
    assert "'<west>' (1)" in text


def test_a_report_on_perfect_answers_and_one_on_unknowns_only_can_be_written(predictor, facts):
    perfect = Evaluation.of(predictor, Examples(("90 a",)), ["north"])
    assert "There are none." in report_html(perfect, facts, model="m", test="t")
    strict = circle_predictor(unknown_threshold=0.99)
    unanswered = Evaluation.of(strict, Examples(("180 a",)), ["north"])
    assert "No text was answered." in report_html(unanswered, facts, model="m", test="t")


def test_pairs_are_shown_one_under_the_other():
    from cptuning.reporting.evaluation_report import example_html

    assert example_html(("a<", "")) == (
        '<span dir="auto">a&lt;</span><br><span class="muted">(empty text)</span>'
    )


@pytest.mark.parametrize(
    ("truth", "expected"),
    [
        (["north"] * 50 + ["east"] * 50, "clearly better"),
        (["east"] * 50 + ["north"] * 50, "clearly worse"),
        (["north"] * 50 + ["east"] * 2, "not clearly different"),
    ],
)
def test_the_verdict_weighs_the_interval_against_the_baseline(predictor, truth, expected):
    half = 50
    texts = Examples(("90 a",) * half + ("0 b",) * (len(truth) - half))
    assert expected in verdict(Evaluation.of(predictor, texts, truth))


def test_many_texts_are_thinned_out_and_the_report_says_so(predictor, facts, monkeypatch):
    monkeypatch.setattr("cptuning.reporting.evaluation_report._MOST_POINTS", 10)
    evaluation = Evaluation.of(predictor, Examples(("80 a",) * 20), ["north"] * 20)
    html = report_html(evaluation, facts, model="m", test="t")
    assert "10 of 23 texts are shown" in html


@pytest.fixture
def failures(predictor):
    """Twelve wrong answers of two kinds, and a right one."""
    texts = [
        *(f"{80 + n} parcel {n}" for n in range(9)),
        *(f"-{70 + n} refund {n}" for n in range(3)),
    ]
    truth = ["east"] * 9 + ["north"] * 3
    return Evaluation.of(predictor, Examples((*texts, "90 fine")), [*truth, "north"])


def test_the_table_of_errors_has_all_of_them_the_most_confident_first(predictor):
    texts = Examples(('70 "a"\r\nb, c', "88 d", "0 e"))
    evaluation = Evaluation.of(predictor, texts, ["east", "south", "east"])
    header, *rows = csv.reader(StringIO(errors_csv(evaluation), newline=""))
    assert header == ["text", "label", "prediction", "confidence"]
    assert [row[:3] for row in rows] == [
        ["88 d", "south", "north"],
        ['70 "a"\r\nb, c', "east", "north"],
    ]
    assert [float(row[3]) for row in rows] == sorted(
        np.round(evaluation.confidence[:2], 4).tolist(), reverse=True
    )


def test_all_but_five_errors_are_folded_and_the_page_finds_them(failures, facts, tmp_path, browser):
    path = tmp_path / "report.html"
    path.write_text(report_html(failures, facts, model="shop", test="test.csv"), "utf-8")
    page = browser.new_page()
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    visible = page.locator(".error:visible")
    assert visible.count() == 5
    page.get_by_text("7 more errors").click()
    assert visible.count() == 12

    page.get_by_label("Search").fill(" PARCEL 7")
    assert visible.count() == 1
    assert page.locator("#find output").text_content() == "1 of 12"
    page.get_by_label("Search").fill("")
    page.get_by_label("Show").select_option("north → south")
    assert visible.count() == 3
    page.get_by_label("Show").select_option("")
    assert visible.count() == 12

    with page.expect_download() as download:
        page.get_by_text("All wrong answers as a CSV file").click()
    assert download.value.suggested_filename == "errors.csv"
    saved = download.value.path().read_bytes().decode("utf-8")
    assert saved == errors_csv(failures)
    assert problems == []


def test_a_search_opens_what_is_folded(failures, facts, tmp_path, browser):
    path = tmp_path / "report.html"
    path.write_text(report_html(failures, facts, model="shop", test="test.csv"), "utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    last = page.locator(".error blockquote").last
    assert not last.is_visible()
    page.get_by_label("Search").fill(last.text_content())
    assert last.is_visible()


def test_the_policy_refuses_every_script_but_the_filter(failures, facts, tmp_path, browser):
    html = report_html(failures, facts, model="shop", test="test.csv")
    path = tmp_path / "report.html"
    path.write_text(html.replace("</form>", "</form><script>document.title = 'run'</script>"))
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.title() == "Evaluation of shop on test.csv"
    assert page.get_by_label("Search").is_visible()
