"""suggest: which texts to label next, on the screen, as JSON and as a file to fill in."""

import json

import pytest
from tests.cli.conftest import GOOD, read_csv, write_csv

POOL = ("so so", "so so", "it was long", "the seats were red", GOOD[0])


@pytest.fixture
def pool(tmp_path):
    return write_csv(tmp_path / "pool.csv", ("id", "text"), list(enumerate(POOL)))


def test_json_holds_texts_with_a_guess_and_how_unsure_it_is(run, model, pool):
    found = json.loads(run("suggest", model, pool, "-n", "2", "--json").stdout)
    assert len(found) == 2
    assert all(s["guess"] in ("good", "bad") and 0 <= s["uncertainty"] <= 1 for s in found)


def test_a_text_is_suggested_once_and_a_known_one_never(run, model, pool):
    found = json.loads(run("suggest", model, pool, "--json").stdout)
    assert sorted(s["text"] for s in found) == sorted(set(POOL) - {GOOD[0]})


def test_people_get_a_table(run, model, pool):
    assert "the seats were red" in run("suggest", model, pool).stdout


def test_the_file_keeps_the_columns_and_waits_for_labels(run, model, pool, tmp_path):
    output = tmp_path / "next.csv"
    assert run("suggest", model, pool, "-n", "1", "--output", output).exit_code == 0
    [row] = read_csv(output.read_text())
    assert list(row) == ["id", "text", "label", "guess"]
    assert row["label"] == ""
    assert POOL[int(row["id"])] == row["text"]


def test_pairs_are_suggested_too(run, pair_model, tmp_path):
    rows = [("is it new?", "it is new."), ("is it old?", "the train is red.")]
    pool = write_csv(tmp_path / "pairs.csv", ("text_a", "text_b"), rows)
    found = json.loads(run("suggest", pair_model, pool, "--json").stdout)
    assert sorted(tuple(s["text"]) for s in found) == sorted(rows)


def test_a_pool_of_known_texts_is_refused(run, model, films):
    result = run("suggest", model, films)
    assert result.exit_code == 2
    assert "knows every one of these texts" in result.stderr
