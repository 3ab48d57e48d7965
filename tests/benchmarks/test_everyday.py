"""The everyday benchmark: its tasks, its resumable records, its report."""

import gzip
import importlib
import json
import os
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.tiny import save_headless

from benchmarks.everyday import data as tasks
from benchmarks.everyday import encoders, report, rows
from benchmarks.everyday.data import PUBLISHED, Task, load_task, stratified_rows
from benchmarks.everyday.encoders import CachedEncoder, SentenceEncoder, weights_hash
from benchmarks.everyday.rows import ROWS, Places, Row
from cptuning.errors import CPTuningError
from cptuning.files.journal import Journal

everyday = importlib.import_module("benchmarks.everyday.__main__")

SHIPPED = Path(__file__).parents[2] / everyday.RECORDS
SIZES = {"praise": 40, "blame": 30, "rare": 5}
WORDS = {"praise": "great good loved", "blame": "dull terrible boring", "rare": "train noon red"}


def write(path, texts):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps({"text_a": t, "label": c}) + "\n" for t, c in texts)


def texts_of(part):
    return [(f"{WORDS[c]} {part} {i}", c) for c, n in SIZES.items() for i in range(n)]


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """Two sets: one with duplicates, test texts among the training texts and texts of no class."""
    strange = [(f"founded long ago {i}", "oos") for i in range(6)]
    test = texts_of("test")
    leaked = [(test[0][0].upper() + " ", "praise")]
    train = [*texts_of("train"), *leaked, texts_of("train")[0], ("", "rare"), *strange[:2]]
    root = tmp_path / "data"
    write(root / "CLINC150" / "train.jsonl.gz", train)
    write(root / "CLINC150" / "test.jsonl.gz", [*test, *strange])
    write(root / "CLINC150" / "train_5.jsonl.gz", texts_of("train")[:50])
    write(root / "TREC" / "train.jsonl.gz", texts_of("train"))
    write(root / "TREC" / "test.jsonl.gz", test)
    monkeypatch.setenv("CPTUNING_DATA", str(root))
    return root


@pytest.fixture
def encoder(tmp_path):
    """A tiny sentence encoder with mean pooling."""
    return sentence_folder(tmp_path / "encoder", "mean_tokens")


def sentence_folder(folder, pooling, modules=("Transformer", "Pooling", "Normalize")):
    save_headless(folder)
    names = {"Transformer": ""}  # which is in the folder itself
    listed = [
        {
            "idx": i,
            "name": str(i),
            "path": names.get(m, m),
            "type": f"sentence_transformers.models.{m}",
        }
        for i, m in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 32}')
    (folder / "Pooling").mkdir()
    config = {"word_embedding_dimension": 16, f"pooling_mode_{pooling}": True}
    (folder / "Pooling" / "config.json").write_text(json.dumps(config))
    return folder


# Tasks


def test_a_sample_keeps_the_shares_of_the_classes():
    labels = ["a"] * 600 + ["b"] * 300 + ["c"] * 100
    rows_ = stratified_rows(labels, 100, seed=0)
    assert Counter(labels[row] for row in rows_) == {"a": 60, "b": 30, "c": 10}
    assert rows_ == sorted(set(rows_))
    assert rows_ == stratified_rows(labels, 100, seed=0)
    assert rows_ != stratified_rows(labels, 100, seed=1)
    assert stratified_rows(labels, 2000, seed=0) == list(range(1000))


@pytest.mark.usefixtures("toys")
def test_a_split_has_so_many_of_each_class_or_all_there_are():
    data = load_task(Task("TREC", 8, 13))
    assert Counter(data.train.labels) == {"praise": 8, "blame": 8, "rare": 5}
    assert data.digest == load_task(Task("TREC", 8, 13)).digest
    other = load_task(Task("TREC", 8, 21))
    assert set(other.train.examples.first) != set(data.train.examples.first)
    assert other.test == data.test
    more = load_task(Task("TREC", 16, 13))
    assert set(data.train.examples.first) < set(more.train.examples.first)


@pytest.mark.usefixtures("toys")
def test_no_text_is_trained_on_twice_or_tested(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_TEST", 10)
    for split in tasks.SPLITS:
        data = load_task(Task("CLINC150", 40, split))
        train = [" ".join(t.casefold().split()) for t in data.train.examples.first]
        assert len(set(train)) == len(train) == sum(SIZES.values())
        assert not set(train) & {t for t, _ in texts_of("test")}
        assert len(data.test.labels) == 10


@pytest.mark.usefixtures("toys")
def test_texts_of_no_class_are_apart():
    data = load_task(Task("CLINC150", 8, 13))
    assert "oos" not in {*data.train.labels, *data.test.labels}
    assert len(data.outside) == 6
    assert not len(load_task(Task("TREC", 8, 13)).outside)


@pytest.mark.usefixtures("toys")
def test_a_published_split_is_taken_as_it_is_with_the_whole_test_set(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_TEST", 10)
    data = load_task(Task("CLINC150", 5, PUBLISHED))
    assert list(data.train.examples.first) == [text for text, _ in texts_of("train")[:50]]
    assert len(data.test.labels) == sum(SIZES.values())


def test_every_task_is_of_the_twelve_sets():
    drawn = [t for t in tasks.TASKS if t.split != PUBLISHED]
    assert len(drawn) == len(set(drawn)) == 12 * 2 * 5
    assert len(tasks.TASKS) - len(drawn) == 4
    setfit = [t for t in tasks.TASKS if Row("setfit", "minilm").covers(t)]
    assert len(setfit) == 6 * 3
    assert {t.shots for t in setfit} == {8}


# Encoders


def test_embeddings_are_the_mean_over_a_texts_own_tokens(encoder):
    import torch

    model = SentenceEncoder(encoder)
    short, long = "great", "a dull and boring film, all in all"
    together = model.encode([short, long])
    assert np.linalg.norm(together, axis=1) == pytest.approx(1)
    inputs = model.tokenizer(short, return_tensors="pt")
    with torch.inference_mode():
        by_hand = model.model(**inputs).last_hidden_state[0].mean(0).numpy()
    assert together[0] @ by_hand / np.linalg.norm(by_hand) > 0.999  # bfloat16
    first = SentenceEncoder(sentence_folder(encoder.with_name("cls"), "cls_token"))
    with torch.inference_mode():
        by_hand = first.model(**inputs).last_hidden_state[0, 0].numpy()
    assert first.encode([short, long])[0] @ by_hand / np.linalg.norm(by_hand) > 0.999


def test_an_encoder_that_would_be_read_wrongly_is_refused(tmp_path):
    with pytest.raises(CPTuningError, match="Dense"):
        SentenceEncoder(
            sentence_folder(tmp_path / "dense", "mean_tokens", ("Transformer", "Pooling", "Dense"))
        )
    with pytest.raises(CPTuningError, match="another pooling"):
        SentenceEncoder(sentence_folder(tmp_path / "max", "max_tokens"))


def test_a_text_is_embedded_once(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "BATCH", 2)
    texts = ["great", "dull", "the red train", "great"]
    first = CachedEncoder(encoder, tmp_path / "cache").embed(texts)
    assert (first.vectors[0] == first.vectors[3]).all()
    monkeypatch.setattr(encoders, "SentenceEncoder", None)  # nothing is left to encode
    again = CachedEncoder(encoder, tmp_path / "cache").embed(texts[::-1])
    assert (again.vectors[::-1] == first.vectors).all()
    assert again.seconds == pytest.approx(first.seconds)
    assert first.seconds > 0


def test_an_encoder_is_known_by_its_weights(encoder, tmp_path):
    moved = tmp_path / "elsewhere"
    encoder.rename(moved)
    before = weights_hash(moved)
    (moved / "modules.json").touch()
    assert weights_hash(moved) == before
    weights = next(moved.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    assert weights_hash(moved) != before


# Runs

CHEAP = ["--only", "majority", "tfidf", "frozen", "--sets", "TREC", "--splits", "13", "21"]


def run(tmp_path, encoder, *more):
    folders = ["--encoder", f"minilm={encoder}", "--encoder", f"gte-small={encoder}"]
    places = ["--cache", str(tmp_path / "cache"), "--output", str(tmp_path / "runs.jsonl")]
    everyday.main([*folders, *places, *more])
    return [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]


def fail(job, places):
    raise AssertionError(f"{job} was done")


@pytest.mark.usefixtures("toys")
def test_a_killed_benchmark_goes_on_where_it_was(tmp_path, encoder, monkeypatch):
    done = []

    def dies_at_the_fourth(job, places, whole=everyday.one_run):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(job)
        return whole(job, places)

    with monkeypatch.context() as patch:
        patch.setattr(everyday, "one_run", dies_at_the_fourth)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, encoder, *CHEAP)
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"set": "TREC", "sho')  # torn
    kept = (tmp_path / "runs.jsonl").read_text().splitlines()[:3]
    records = run(tmp_path, encoder, *CHEAP)
    assert len(records) == 4 * 2 * 2  # rows, shots, splits
    assert [json.dumps(r) for r in records[:3]] == [json.dumps(json.loads(k)) for k in kept]
    monkeypatch.setattr(everyday, "one_run", fail)
    assert run(tmp_path, encoder, *CHEAP) == records


@pytest.mark.usefixtures("toys")
def test_what_a_record_tells(tmp_path, encoder):
    options = ["--sets", "CLINC150", "--shots", "8", "--splits", "13"]
    found = run(tmp_path, encoder, "--only", "majority", "tfidf", "frozen", *options)
    majority, tfidf, frozen, _ = found
    assert majority["accuracy"] == pytest.approx(40 / 75, abs=1e-5)
    assert majority["macro_f1"] == pytest.approx(2 * 40 / (75 + 40) / 3, abs=1e-5)
    assert majority["oos_auroc"] is None
    assert tfidf["accuracy"] == 1  # the words tell
    assert tfidf["oos_auroc"] == 1
    assert 0 <= frozen["oos_auroc"] <= 1
    assert frozen["fit_seconds"] > 0
    assert frozen["weights"] == weights_hash(encoder)
    assert {r["train_texts"] for r in found} == {21}
    # Nothing of this machine's folders is in what a run is known by.
    assert str(tmp_path) not in json.dumps(found)


@pytest.mark.usefixtures("toys")
def test_our_own_rows_run_by_the_names_of_presets(tiny, monkeypatch):
    quick = partial(rows.CPTuningClassifier, steps=1, folds=2)
    quick.learner_class = rows.CPTuningClassifier.learner_class
    monkeypatch.setattr(rows, "CPTuningClassifier", quick)
    data = load_task(Task("CLINC150", 8, 13))
    outcome = rows.ours(data, "default", str(tiny("bert")), seed=13)
    assert len(outcome.answers) == len(data.test.labels)
    assert len(outcome.inside) == len(data.test.labels)
    assert len(outcome.outside) == 6


@pytest.mark.usefixtures("toys")
def test_setfit_makes_the_steps_that_it_has_time_for(encoder, monkeypatch):
    pytest.importorskip("setfit")
    data = load_task(Task("CLINC150", 8, 13))
    outcome = rows.setfit(data, encoder, seed=13)
    assert len(outcome.answers) == len(data.test.labels)
    assert len(outcome.outside) == 6
    assert outcome.facts["steps"] == outcome.facts["all_steps"] > 4
    monkeypatch.setattr(rows, "SETFIT_SECONDS", 0)
    assert rows.setfit(data, encoder, seed=13).facts["steps"] == 4


@pytest.mark.skipif("CPTUNING_DATA" not in os.environ, reason="CPTUNING_DATA is not set")
@pytest.mark.parametrize("kind", ["default", "instant"])
def test_the_shipped_runs_are_those_of_today_s_settings(kind):
    """A setting that is added changes no run: see ``experiments/run_keys.py``."""
    task = Task("TREC", 8, 13)
    data = load_task(task)
    key = {"set": "TREC", "shots": 8, "split": 13, "data": data.digest}
    key |= Row(kind, "embedded").key(data, Places({}, None))
    assert any(key.items() <= record.items() for record in Journal(SHIPPED).entries(dict))


@pytest.mark.usefixtures("toys")
def test_other_settings_make_another_run(monkeypatch):
    data = load_task(Task("TREC", 8, 13))
    key = Row("default", "embedded").key(data, Places({}, None))
    assert key == Row("default", "embedded").key(data, Places({}, None))
    monkeypatch.setattr(
        rows.CPTuningClassifier,
        "settings_for",
        lambda self, *given, whole=rows.CPTuningClassifier.settings_for, **more: whole(
            type(self)(preset="paper"), *given, **more
        ),
    )
    assert Row("default", "embedded").key(data, Places({}, None)) != key


@pytest.mark.usefixtures("toys")
def test_rows_that_cannot_run_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(rows, "find_spec", lambda name: None)
    monkeypatch.setattr(rows.CPTuningClassifier, "presets", {})
    output = ["--cache", str(tmp_path), "--output", str(tmp_path / "runs.jsonl")]
    everyday.main([*output, "--sets", "TREC", "--shots", "8", "--splits", "13"])
    said = capsys.readouterr().out
    assert "Left out: minilm, frozen + LR: name its folder with --encoder minilm=FOLDER." in said
    assert 'Left out: SetFit on gte-small: it needs setfit: pip install "cptuning[bench]".' in said
    assert "Left out: **ours**, default, embedded: there is no preset 'default' yet." in said
    assert said.count("Left out") == len(ROWS) - 2
    assert "## Not run yet" in (tmp_path / "runs.md").read_text()


def test_sentence_encoders_need_backbones_that_take_them(encoder, monkeypatch):
    row, places = Row("default", "minilm"), Places({"minilm": encoder}, None)
    monkeypatch.setattr(rows, "_parameters", lambda: ("backbone", "preset"))
    assert row.obstacle(places) == "sentence encoders are not backbones yet"
    monkeypatch.setattr(rows, "_parameters", lambda: ("backbone", "preset", "pooling"))
    assert row.obstacle(places) is None


@pytest.mark.usefixtures("toys")
def test_a_dry_run_only_says_how_long_it_would_take(tmp_path, capsys):
    output = tmp_path / "runs.jsonl"
    chosen = ["--output", str(output), "--only", "majority", "tfidf", "--sets", "TREC", "--dry-run"]
    everyday.main(chosen)
    assert "20 runs, 20 of them left" in capsys.readouterr().out
    assert not output.exists()


def test_the_estimate_is_what_the_row_took_before():
    job = {"row": "tfidf", "encoder": None, "set": "TREC", "shots": 8}
    assert everyday.estimated_seconds(job, []) == rows.GUESSES["tfidf"]
    other = {**record("tfidf", "SST5", 13, 0.5), "fit_seconds": 7, "seconds_per_1000": 2}
    assert everyday.estimated_seconds(job, [other]) == 8  # 500 test texts
    same = {**record("tfidf", "TREC", 13, 0.5), "fit_seconds": 1, "seconds_per_1000": 0}
    assert everyday.estimated_seconds(job, [other, same]) == 1


# The report


def record(row, name, split, accuracy, shots=8, encoder=None, **more):
    return {
        "row": row,
        "encoder": encoder,
        "set": name,
        "shots": shots,
        "split": split,
        "accuracy": accuracy,
        "macro_f1": accuracy / 2,
        "fit_seconds": 10 * accuracy,
        "seconds_per_1000": 1.0,
        "oos_auroc": None,
        "test_texts": 500,
        "machine": "a processor",
        **more,
    }


def row_of(text, title):
    line = next(line for line in text.splitlines() if line.startswith(f"| {title}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_mean_is_over_sets_of_the_mean_over_splits():
    records = report.Records(
        [
            record("tfidf", "TREC", 13, 0.6),
            record("tfidf", "TREC", 21, 0.8),
            record("tfidf", "SST5", 13, 0.3),
            record("tfidf", "SST5", 21, 0.3),
            record("majority", "SST5", 13, 0.2),
        ]
    )
    table = report.accuracy_table(records, ROWS, ("TREC", "SST5"), 8, (13, 21))
    assert row_of(table, "TF-IDF") == [
        "TF-IDF + LR",
        "50.0",  # (70 + 30) / 2
        "25.0",
        "5",
        "1",
        "70.0 ± 14.1",
        "30.0",
    ]
    lacking = row_of(table, "majority")
    assert lacking[0] == "majority (1 of 2 sets, from 1 of 2 splits)"
    assert lacking[1] == "20.0"
    assert lacking[5] == "-"
    assert "SetFit" not in table


def test_the_latest_record_counts():
    text = report.report([record("tfidf", "TREC", 13, 0.1), record("tfidf", "TREC", 13, 0.9)])
    assert row_of(text, "TF-IDF")[1] == "90.0"


def test_setfit_is_compared_on_its_own_tasks_and_its_steps_are_told():
    steps = {"encoder": "minilm", "all_steps": 1000}
    records = [
        record("tfidf", "TREC", 13, 0.6),
        record("tfidf", "dbpedia14", 13, 0.9),
        record("tfidf", "TREC", 100, 0.9),
        record("setfit", "TREC", 13, 0.8, steps=1000, **steps),
        record("setfit", "HWU64", 13, 0.6, steps=250, **steps),
    ]
    text = report.report(records)
    beside = text[text.index("## Beside SetFit") : text.index("## Published")]
    assert "of its steps it made HWU64 25 %" in beside
    assert row_of(beside, "TF-IDF")[1] == "60.0"  # not dbpedia14, not the fifth split
    assert row_of(beside, "SetFit on minilm")[1] == "70.0"
    assert "SetFit" not in report.report(records[:3]).split("## Not run yet")[0]


def test_published_splits_stand_beside_published_figures():
    ours = record("frozen", "HWU64", PUBLISHED, 0.8, shots=5, encoder="gte-small")
    text = report.published_table(report.Records([ours]))
    assert row_of(text, "gte-small") == ["gte-small, frozen + LR", "-", "-", "80.0 (8 s)", "-"]
    assert row_of(text, "*ICDA*") == ["*ICDA*", "92.6", "94.8", "82.5", "87.4"]


def test_out_of_scope_is_told_of_rows_that_know_it():
    records = [
        record("tfidf", "CLINC150", 13, 0.7, oos_auroc=0.8),
        record("tfidf", "CLINC150", 21, 0.7, oos_auroc=0.9),
        record("majority", "CLINC150", 13, 0.1),
    ]
    text = report.out_of_scope_table(report.Records(records))
    assert row_of(text, "TF-IDF") == ["TF-IDF + LR", "0.850 ± 0.071", "-"]
    assert "majority" not in text


def test_what_was_not_run_is_said():
    text = report.report([record("tfidf", "TREC", 13, 0.6)])
    missing = text.split("## Not run yet")[1]
    assert f"- TF-IDF + LR: {len(tasks.TASKS) - 1} tasks" in missing
    assert "- SetFit on minilm: 18 tasks" in missing


def test_a_remark_on_records_is_told_once():
    noted = [record("tfidf", "TREC", split, 0.6, note="On a busy machine.") for split in (13, 21)]
    assert report.report(noted).count("On a busy machine.") == 1
    assert "busy" not in report.report([record("tfidf", "TREC", 13, 0.6)])


def test_the_picture_compares_rows_on_the_tasks_they_share(monkeypatch):
    drawn, notes = {}, []

    def draw(points, note):
        drawn.update(points)
        notes.append(note)

    monkeypatch.setattr(report, "accuracy_by_seconds_png", draw)
    records = [
        record("majority", "TREC", 13, 0.2),
        record("tfidf", "TREC", 13, 0.6),
        record("tfidf", "SST5", 13, 0.2),
        record("setfit", "TREC", 13, 0.8, encoder="minilm"),
        record("default", "TREC", 13, 0.9, encoder="embedded", on_gpu=True),
    ]
    report.picture(records)
    assert drawn == {("TF-IDF + LR", ""): (6.0, 60.0), ("SetFit", "minilm"): (8.0, 80.0)}
    assert notes == ["8 examples per class, mean over 1 data sets (1 tasks)"]
    records[3]["set"] = "Clickbait"
    with pytest.raises(CPTuningError, match="No two rows have tasks in common"):
        report.picture(records)


def test_the_picture_leaves_out_a_row_that_has_hardly_been_run(monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        report, "accuracy_by_seconds_png", lambda points, note: drawn.update(points)
    )
    records = [
        record(kind, name, 13, 0.5, encoder=encoder)
        for kind, encoder in (("tfidf", None), ("setfit", "minilm"))
        for name in ("TREC", "SST5", "Clickbait")
    ]
    report.picture([*records, record("instant", "TREC", 13, 0.9, encoder="embedded")])
    assert set(drawn) == {("TF-IDF + LR", ""), ("SetFit", "minilm")}
