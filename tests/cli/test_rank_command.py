"""cptuning rank: fit, search and evaluate, from files to files."""

import json

import pytest
from tests.cli.conftest import write_csv

from cptuning.data.ranking_files import read_run

DOCUMENTS = [
    ("tea", "how to brew green tea"),
    ("tyre", "change a flat tyre on your car"),
    ("cat", "what to feed a young cat"),
    ("tax", "pay your income tax on time"),
]
QUERIES = [("1", "green tea"), ("2", "my flat tyre"), ("3", "income tax")]
QRELS = "1 0 tea 1\n2 0 tyre 2\n2 0 tea 0\n3 0 tax 1\n99 0 tea 1\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranking")
    write_csv(folder / "documents.csv", ("id", "text"), DOCUMENTS)
    lines = [json.dumps({"_id": name, "text": text}) for name, text in QUERIES]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "qrels.txt").write_text(QRELS)
    return folder


@pytest.fixture(scope="module")
def model(files):
    from typer.testing import CliRunner

    from cptuning.cli import app

    words = ["rank", "fit", files / "documents.csv", "--output", files / "model", "--quiet"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    assert "ranks 4 documents" in result.stdout
    return files / "model"


def test_fit_tells_what_held_out_queries_say_and_what_was_kept(run, files, tmp_path):
    words = ["--queries", files / "queries.jsonl", "--qrels", files / "qrels.txt", "--json"]
    result = run(
        *("rank", "fit", files / "documents.csv", "--output", tmp_path / "model", "--quiet"),
        *(*words, "--preset", "instant", "--set", "negatives=2"),
    )
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["documents"], told["judged_queries"]) == (4, 3)
    assert set(told["held_out_ndcg"]) == {"sentence view", "pair view"}
    assert set(told["kept"]) <= {"pair view"}
    facts = json.loads((tmp_path / "model" / "cptuning.json").read_text())
    assert facts["settings"]["negatives"] == 2
    shown = run("info", tmp_path / "model").stdout
    assert "documents" in shown
    assert "judged queries" in shown


def test_search_shows_the_best_documents(run, model):
    shown = run("rank", "search", model, "a flat tyre", "--top", 2).stdout
    assert "change a flat tyre" in shown.splitlines()[1]
    found = json.loads(run("rank", "search", model, "a flat tyre", "-k", 2, "--json").stdout)
    assert found[0]["id"] == "tyre"
    assert len(found) == 2


def test_search_writes_a_run_that_evaluate_measures(run, model, files, tmp_path):
    words = ["--queries", files / "queries.jsonl", "--output", tmp_path / "run.txt"]
    result = run("rank", "search", model, *words, "--top", 3)
    assert result.exit_code == 0, result.output
    rankings = read_run(tmp_path / "run.txt")
    assert {name: found[0] for name, found in rankings.items()} == {
        "1": "tea",
        "2": "tyre",
        "3": "tax",
    }
    assert all(len(found) == 3 for found in rankings.values())
    words = [files / "queries.jsonl", files / "qrels.txt", "--run", tmp_path / "run.txt"]
    measured = json.loads(run("rank", "evaluate", model, *words, "--json").stdout)
    expected = {"ndcg@10": 1.0, "mrr": 1.0, "recall@100": 1.0, "n": 3}
    assert measured == {**expected, "run": expected}
    assert "1.0000" in run("rank", "evaluate", model, *words, "--cutoff", 1).stdout


def test_a_query_without_a_ranking_counts_as_zero(run, model, files, tmp_path):
    (tmp_path / "run.txt").write_text("1 Q0 cat 1 0.9 x\n1 Q0 tea 2 0.8 x\n")
    words = [files / "queries.jsonl", files / "qrels.txt", "--run", tmp_path / "run.txt"]
    measured = json.loads(run("rank", "evaluate", model, *words, "--json").stdout)
    assert measured["run"]["mrr"] == pytest.approx(0.5 / 3, abs=1e-6)


BAD_FILES = {
    "qrels.txt": [
        ("1 0 tea 1\n2 0\n", "line 2 has 2 columns"),
        ("1 0 tea good\n", "line 1: the grade 'good' is not a number"),
        ("7 0 tea 1\n", "judges none of the queries"),
        ("1 0 x 1\n", "The document 'x', judged for the query '1', is not among"),
        ("\n", "is empty"),
    ],
    "queries.jsonl": [
        ('{"text": "a"}\n', "has no id column"),
        ('{"id": "1", "text": "a"}\n{"id": "1", "text": "b"}\n', "the id '1' is that of"),
        ('{"id": "a b", "text": "a"}\n', "the id 'a b' is empty or has a space"),
    ],
}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [(name, *case) for name, cases in BAD_FILES.items() for case in cases],
)
def test_files_that_it_cannot_use_are_refused(run, files, tmp_path, name, content, sentence):
    paths = {known: files / known for known in ("qrels.txt", "queries.jsonl")}
    paths[name] = tmp_path / name
    paths[name].write_text(content)
    words = ["--queries", paths["queries.jsonl"], "--qrels", paths["qrels.txt"]]
    result = run(
        "rank", "fit", files / "documents.csv", "--output", tmp_path / "model", "-q", *words
    )
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fit", "{documents}", "--output", "m", "--qrels", "{qrels}"], "--queries and --qrels"),
        (["fit", "{documents}", "--output", "m", "--id", "x"], "has no column 'x'"),
        (["fit", "{documents}", "--output", "m", "--set", "stepps=1"], "did you mean steps"),
        (["search", "{model}"], "Give a query, or a file"),
        (["search", "{model}", " "], "The query is empty"),
        (["search", "{model}", "tea", "--output", "x"], "--output is for --queries"),
        (["search", "{model}", "--queries", "no.csv"], "no.csv does not exist"),
        (["evaluate", "{model}", "{queries}", "no.txt"], "no.txt does not exist"),
        (["evaluate", "{model}", "{queries}", "{qrels}", "--run", "{qrels}"], "line of a run"),
        (["search", "no-model", "tea"], "There is no model folder"),
    ],
)
def test_mistakes_are_one_sentence(run, model, files, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    names = {
        "documents": files / "documents.csv",
        "queries": files / "queries.jsonl",
        "qrels": files / "qrels.txt",
        "model": model,
    }
    result = run("rank", *(word.format(**names) for word in words))
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_classifier_is_no_ranker(run, tmp_path, films):
    words = ["fit", films, "--output", tmp_path / "model", "--preset", "instant", "-q"]
    assert run(*words).exit_code == 0
    result = run("rank", "search", tmp_path / "model", "tea")
    assert result.exit_code == 2
    assert "is not a ranker" in result.stderr


def test_a_ranker_takes_no_labelled_examples(run, model, films):
    result = run("add", model, films)
    assert result.exit_code == 2
    assert "is not a classifier, so it takes no labelled examples" in result.stderr
