"""check: a list for people, JSON for programs, a page, and an exit code for scripts."""

import json

import pytest
from tests.cli.conftest import PAIRS, write_csv

ROWS = [
    ("my parcel is late", "delivery"),
    ("where is the parcel", "delivery"),
    ("the order has not come", "delivery"),
    ("give me my money back", "refund"),
    ("i would like a refund", "refund"),
    ("Where is the parcel?", "refund"),
]


@pytest.fixture
def train(tmp_path):
    return write_csv(tmp_path / "train.csv", ("text", "label"), ROWS)


def test_people_get_a_list_with_line_numbers(run, train):
    result = run("check", train)
    assert result.exit_code == 0
    assert "The same text under different labels (1)" in result.stdout
    assert f"'delivery' in {train}, line 3 and 'refund' in {train}, line 7" in result.stdout


def test_json_is_one_object_with_every_finding(run, train, tmp_path):
    test = write_csv(tmp_path / "test.csv", ("text", "label"), [("my parcel is late!", "delivery")])
    answer = json.loads(run("check", train, "--test", test, "--json").stdout)
    assert (answer["n_train"], answer["n_test"]) == (6, 1)
    assert answer["counts"]["conflict"] == answer["counts"]["leak"] == 1
    [leak] = [f for f in answer["findings"] if f["kind"] == "leak"]
    assert leak["rows"][0]["where"] == f"{test}, line 2"
    assert leak["evidence"][0]["row"] == 0


def test_findings_are_no_failure_unless_that_is_asked_for(run, train):
    assert run("check", train).exit_code == 0
    assert run("check", train, "--strict").exit_code == 1


def test_strict_is_content_with_clean_data(run, tmp_path):
    rows = [("a wet day", "x"), ("some cold night", "x")]
    clean = write_csv(tmp_path / "one.csv", ("text", "label"), rows)
    result = run("check", clean, "--strict")
    assert (result.exit_code, "Nothing looks like a mistake." in result.stdout) == (0, True)


def test_the_page_is_written_whole(run, train, tmp_path):
    page = tmp_path / "page.html"
    assert run("check", train, "--report", page).exit_code == 0
    assert "Check of train.csv" in page.read_text()


def test_pairs_and_other_columns(run, tmp_path):
    rows = [*PAIRS, (*PAIRS[0][:2], "no")]
    train = write_csv(tmp_path / "p.csv", ("q", "a", "same"), rows)
    result = run("check", train, "--text", "q", "--text-b", "a", "--label", "same", "--json")
    assert json.loads(result.stdout)["counts"]["conflict"] == 1


def test_mistakes_are_one_sentence(run, train, tmp_path):
    pairs = write_csv(tmp_path / "pairs.csv", ("text_a", "text_b", "label"), PAIRS)
    for words in (("no.csv",), (train, "--test", pairs), (train, "--report", "no/such/page.html")):
        result = run("check", *words)
        assert result.exit_code == 2
        assert "error: " in result.stderr
