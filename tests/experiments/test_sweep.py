"""A sweep: dev alone chooses, what is done stays done, and a kill loses only what is in flight."""

import json
import signal
import subprocess
import sys
import time
from threading import Thread

import numpy as np
import pytest
import torch
from tests.experiments.conftest import keys_of, write_rows
from tests.standstill import start_python, wait_for_files

from cptuning.errors import CPTuningError
from cptuning.experiments.directory import ResultDirectory
from cptuning.experiments.planning import plan
from cptuning.experiments.sweep_worker import work
from cptuning.experiments.trainer import CandidateTrainer, TrainedCandidate
from cptuning.methods import candidate_search

BACKBONE = {"name": "none", "weights": "abc", "parameters": 28_000_000}


class FakeTrainer:
    """Trains nothing: gives the scores it was made with, and remembers its calls."""

    def __init__(self, dev=lambda candidate: (0.5, 0.5), seconds=0.0):
        self.dev, self.seconds = dev, seconds
        self.fits, self.tests = [], []

    def fit(self, cell, candidate):
        self.fits.append(candidate.key)
        time.sleep(self.seconds)
        record = {"key": candidate.key, "configuration": candidate.configuration, "seconds": 0.1}
        score = self.dev(candidate)
        if isinstance(score, str):
            return TrainedCandidate(record | {"failed": score}, None)
        accuracy, log_loss = score
        dev = {"accuracy": accuracy, "log_loss": log_loss}
        return TrainedCandidate(record | {"dev": dev, "best_step": 1}, None)

    def hold(self, fitted):
        pass

    def test(self, cell, fitted):
        self.tests.append(fitted.record["key"])
        return {"key": fitted.record["key"], "accuracy": 0.7, "majority": 0.5, "rows": 12}, ["a"]


def rate(candidate):
    return candidate.configuration["settings"]["learning_rate"]


def test_dev_accuracy_chooses_then_log_loss_and_only_the_chosen_is_tested(request_for, tmp_path):
    planned = plan(request_for(fast=False, methods=("cp-tuning",)), BACKBONE)
    (one,) = planned
    wanted = one.candidates[7]
    trainer = FakeTrainer(lambda c: (0.8, 0.3 if c is wanted else 0.4))
    directory = ResultDirectory(tmp_path)
    work(planned, directory, trainer)
    assert directory.chosen(one.cell)["key"] == wanted.key
    assert trainer.tests == [wanted.key]
    assert len(trainer.fits) == 12  # The chosen one's weights were still there.
    assert keys_of(tmp_path, "tests") == {wanted.key}
    assert [path.stem for path in (tmp_path / "predictions").iterdir()] == [wanted.key]


def test_a_candidate_that_fails_is_recorded_and_never_chosen(request_for, tmp_path):
    planned = plan(request_for(methods=("cp-tuning",)), BACKBONE)
    bad = planned[0].candidates[0]
    trainer = FakeTrainer(lambda c: "not finite" if c is bad else (0.1, 3.0))
    directory = ResultDirectory(tmp_path)
    work(planned, directory, trainer)
    assert directory.run(bad.key)["failed"] == "not finite"
    assert trainer.tests == [planned[0].candidates[1].key]
    nothing = FakeTrainer(lambda c: "not finite")
    work(planned, ResultDirectory(tmp_path / "all-fail"), nothing)
    assert nothing.tests == []


def test_workers_on_one_directory_train_nothing_twice(request_for, tmp_path):
    planned = plan(
        request_for(methods=("pet", "cp-tuning"), datasets=("CR", "MR"), seeds=(13, 21)), BACKBONE
    )
    planned += plan(request_for("ablation", methods=()), BACKBONE)  # shares runs with main
    trainer = FakeTrainer(seconds=0.01)
    threads = [
        Thread(target=work, args=(planned, ResultDirectory(tmp_path), trainer)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(trainer.fits) == sorted({key for one in planned for key in one.cell.keys})
    assert all(ResultDirectory(tmp_path).is_done(one.cell) for one in planned)


def test_a_lock_is_free_again_when_its_holder_is_gone(tmp_path):
    directory = ResultDirectory(tmp_path)
    with directory.lock("x") as first, directory.lock("x") as second, directory.lock("y") as other:
        assert (first, second, other) == (True, False, True)
    code = f"""
import time; from pathlib import Path; from cptuning.experiments.directory import ResultDirectory
with ResultDirectory(Path({str(tmp_path)!r})).lock("x"):
    print("held", flush=True); time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with directory.lock("x") as is_mine:
            assert not is_mine
        holder.kill()
        holder.wait()
    with directory.lock("x") as is_mine:
        assert is_mine


def test_adding_a_seed_or_a_method_adds_only_its_runs(run, request_for):
    folder = request_for().output
    run(methods=("cp-tuning",))
    first = {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()}
    assert len(first) == 2
    run(methods=("cp-tuning", "warp"), seeds=(13, 21))
    assert len(keys_of(folder)) == 8
    assert {path: path.stat().st_mtime_ns for path in first} == first
    _, files = run(methods=("warp",))  # All that the directory holds is in the report.
    assert len(files["main.csv"].read_text().splitlines()) == 1 + 4


def test_candidates_are_trained_and_chosen_without_the_test_file(run, request_for, tmp_path):
    from tests.experiments.conftest import BAD, GOOD, write_dataset

    folder = tmp_path / "data"
    write_dataset(folder, "CR", {"negative": BAD, "positive": GOOD})
    test = folder / "CR" / "test.jsonl.gz"
    test.unlink()
    with pytest.raises(CPTuningError, match=r"no test\.jsonl\.gz"):
        run(data=folder, methods=("cp-tuning",))
    output = request_for().output
    assert len(keys_of(output)) == 2
    assert keys_of(output, "tests") == set()
    write_rows(test, [{"text_a": text, "label": "positive"} for text in GOOD[:5]])
    run(data=folder, methods=("cp-tuning",))
    (key,) = keys_of(output, "tests")
    assert ResultDirectory(output).test(key)["rows"] == 5


def test_a_record_describes_its_run_completely(run, request_for):
    run(methods=("pet",), datasets=("MRPC",))
    directory = ResultDirectory(request_for().output)
    (cell,) = directory.planned()
    chosen = directory.chosen(cell)
    configuration = chosen["configuration"]
    assert configuration["method"] == "pet"
    assert configuration["settings"]["label_words"] == {"not_equivalent": "No", "equivalent": "Yes"}
    assert configuration["split"] == {"seed": 13, "counts": 16}
    assert configuration["train"]["rows"] == 8
    assert len(configuration["train"]["sha256"]) == 64
    assert len(configuration["backbone"]["weights"]) == 64
    assert configuration["backbone"]["name"] == "bert"  # no path of this machine
    assert chosen["versions"]["torch"]
    assert chosen["hardware"]["device"] == "cpu"
    assert chosen["seconds"] > 0
    assert 0 <= time.time() - chosen["ended"] < 600
    assert chosen["versions"]["cptuning"]
    assert chosen["peak_memory_mb"] > 0
    assert set(chosen["dev"]) == {"accuracy", "log_loss"}
    score = directory.test(chosen["key"])
    assert score["rows"] == 12
    assert score["majority"] == 0.5
    assert 0 <= score["f1"] <= 1
    answers = (directory.folder / "predictions" / f"{chosen['key']}.txt").read_text().splitlines()
    assert len(answers) == 12
    for path in directory.folder.rglob("*.json"):
        assert str(request_for().backbone) not in path.read_text()


def test_the_weights_are_restored_between_trainings_whatever_the_method(request_for, data, tiny):
    methods = ("cp-tuning", "warp", "fine-tuning", "p-tuning", "lm-bff-l", "pet")
    planned = plan(request_for(methods=methods, steps=3), BACKBONE)
    by_method = {one.cell.method: one for one in planned}

    def trained(trainer, method):
        one = by_method[method]
        return trainer.fit(one.cell, one.candidates[0]).record["dev"]

    shared = CandidateTrainer(str(tiny("bert")), "cpu", data)
    before = shared.backbone_facts["weights"]
    in_a_row = {method: trained(shared, method) for method in (*methods, "cp-tuning")}
    for method in ("cp-tuning", "fine-tuning"):
        assert in_a_row[method] == trained(CandidateTrainer(str(tiny("bert")), "cpu", data), method)
    del shared.backbone_facts
    assert shared.backbone_facts["weights"] == before


def test_a_cell_searches_once_and_each_run_is_as_if_it_had_searched(
    request_for, data, tiny, monkeypatch
):
    (one,) = plan(request_for(methods=("lm-bff-l",), steps=6, fast=False), BACKBONE)
    searches = []
    search = candidate_search.search_words

    def counted(*words, **more):
        searches.append(1)
        return search(*words, **more)

    monkeypatch.setattr(candidate_search, "search_words", counted)
    shared = CandidateTrainer(str(tiny("bert")), "cpu", data)
    some = [one.candidates[i] for i in (0, 5, 10)]  # of three rates and batch sizes
    in_a_row = [shared.fit(one.cell, candidate).record for candidate in some]
    assert len(searches) == 1
    for candidate, found in zip(some[1:], in_a_row[1:], strict=True):
        alone = CandidateTrainer(str(tiny("bert")), "cpu", data).fit(one.cell, candidate).record
        for fact in ("dev", "best_step", "search", "configuration"):
            assert found[fact] == alone[fact]
    assert in_a_row[0]["search"]["candidates"] == 8


def test_runs_have_the_precision_that_was_asked_for_and_say_so(request_for):
    exact, rounded = (request_for(steps=5, precision=kind) for kind in ("float32", "bfloat16"))
    one = plan(exact, BACKBONE)[0]
    runs = [
        CandidateTrainer.of(each).fit(one.cell, one.candidates[0]).record
        for each in (exact, rounded)
    ]
    assert [run["hardware"]["precision"] for run in runs] == ["float32", "bfloat16"]
    assert runs[0]["dev"]["log_loss"] != runs[1]["dev"]["log_loss"]


def test_held_weights_give_the_same_answers_later(request_for, data, tiny):
    (one,) = plan(request_for(methods=("cp-tuning",), steps=20), BACKBONE)
    trainer = CandidateTrainer(str(tiny("bert")), "cpu", data)
    first = trainer.fit(one.cell, one.candidates[0])
    trainer.hold(first)
    _, answers = trainer.test(one.cell, first)
    trainer.fit(one.cell, one.candidates[1])
    assert trainer.test(one.cell, first)[1] == answers


def command(request, *more, **until):
    words = [request.study, "--output", request.output, "--backbone", request.backbone]
    words += ["--data", request.data, "--datasets", ",".join(request.datasets)]
    words += ["--seeds", ",".join(map(str, request.seeds)), "--methods", ",".join(request.methods)]
    code = "from runpy import run_module; run_module('cptuning.experiments', run_name='__main__')"
    return start_python(code, *words, "--device", "cpu", *more, **until)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_sweep_loses_at_most_the_run_in_flight(request_for, run, how):
    request = request_for(methods=("cp-tuning",))
    runs = request.output / "runs"
    process = command(request, "--steps", "4", until="runs/*.json", times=3)
    wait_for_files(runs, "*.json", process, n=3)
    process.send_signal(how)
    _, stderr = process.communicate()
    kept = {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert len(kept) == 3
    assert all("dev" in json.loads(path.read_text()) for path in kept)
    if how == signal.SIGINT:
        assert "finished runs are kept" in stderr
    run(methods=("cp-tuning",), steps=4, fast=False)
    assert len(list(runs.glob("*.json"))) == 12
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_several_processes_share_the_work(run, request_for):
    _, files = run(workers=2, seeds=(13, 21))
    assert len(keys_of(request_for().output)) == 8
    assert len(files["main.csv"].read_text().splitlines()) == 1 + 4


def test_a_directory_is_about_one_backbone(run, tiny):
    run(methods=("cp-tuning",))
    with pytest.raises(CPTuningError, match="holds results of another backbone"):
        run(methods=("cp-tuning",), backbone=str(tiny("roberta")))


def test_a_published_directory_is_small_and_can_be_continued_like_any_other(
    run, request_for, tmp_path
):
    from cptuning.experiments.comparison import compare

    public = tmp_path / "public"
    _, files = run(publish=public)
    assert sorted(path.name for path in public.iterdir()) == [
        *("figures", "index.html", "main.csv", "main.html", "main.md", "main.tex"),
        *("plan.json", "records.jsonl.gz"),
    ]
    assert (public / "main.md").read_text() == files["main.md"].read_text()
    assert compare(request_for().output, public)[0].test.difference == 0
    said, _ = run(output=public, dry_run=True)
    assert said == ["4 runs, 0 of them still to do."]
    run(output=public, seeds=(13, 21))
    assert len(keys_of(public)) == 4  # of the new seed


def test_what_is_no_longer_planned_is_no_longer_published(run, request_for, tmp_path):
    public = tmp_path / "public"
    run("tsne", methods=("cp-tuning",), publish=public)
    (before,) = (public / "embeddings").iterdir()
    run("tsne", methods=("cp-tuning",), publish=public, steps=2)
    (after,) = (public / "embeddings").iterdir()
    assert after != before
    assert (request_for().output / "embeddings" / before.name).is_file()


def test_a_report_alone_trains_nothing_and_says_what_is_missing(run, request_for):
    run(seeds=(13, 21))
    folder = request_for().output
    for key in [key for cell in ResultDirectory(folder).planned()[1:] for key in cell.keys]:
        (folder / "runs" / f"{key}.json").unlink()
    before = keys_of(folder)
    _, files = run(report_only=True)
    assert keys_of(folder) == before
    assert "Not finished: 3 of 4 cells" in files["main.md"].read_text()
    assert len(files["main.csv"].read_text().splitlines()) == 1 + 1


def test_a_report_alone_needs_neither_the_data_nor_the_backbone(run, tmp_path):
    _, first = run()
    before = first["main.md"].read_text()
    first["main.md"].unlink()
    _, again = run(report_only=True, backbone=str(tmp_path / "gone"), data=tmp_path / "gone")
    assert again["main.md"].read_text() == before


def test_a_report_of_nothing_is_refused(run, request_for):
    with pytest.raises(CPTuningError, match="holds no results"):
        run(report_only=True)
    assert not request_for().output.exists()
    run(methods=("cp-tuning",))
    with pytest.raises(CPTuningError, match="Nothing of ablation is finished"):
        run("ablation", report_only=True)


def test_tuning_trains_more_configurations_and_only_of_cp_tuning(run, request_for):
    run(tune=True, methods=("cp-tuning", "warp"))
    assert len(keys_of(request_for().output)) == (2 + 24) + 2
    assert "What the tuning chose" in (request_for().output / "main.md").read_text()


def test_a_dry_run_counts_and_estimates_and_writes_nothing(run, request_for):
    said, files = run(dry_run=True, fast=False)
    assert said[0].startswith("24 runs, 24 of them still to do: about ")
    assert "(measured now)" in said[0]
    assert said[1].startswith("  cp-tuning: 12 runs, ") or said[2].startswith("  cp-tuning: 12 ")
    assert "With --fast (two splits, two learning rates, one batch size): 4 runs, about" in said[-2]
    assert said[-1].startswith("With --workers N, ")
    assert files == {}
    assert not request_for().output.exists()
    run(methods=("cp-tuning",))
    said, _ = run(dry_run=True, workers=2)
    assert said[0].startswith("4 runs, 2 of them still to do")
    assert "(from the records and measured now)" in said[0]
    assert "with 2 workers" in said[0]


def test_an_unknown_runner_is_refused(run):
    with pytest.raises(CPTuningError, match="There is no runner 'slurm': use one of local, ray"):
        run(runner="slurm")


def test_workers_say_in_one_sentence_why_they_stopped(run, tmp_path, capfd):
    from tests.experiments.conftest import BAD, GOOD, write_dataset

    write_dataset(tmp_path / "data", "CR", {"negative": BAD, "positive": GOOD})
    (tmp_path / "data" / "CR" / "test.jsonl.gz").unlink()
    with pytest.raises(CPTuningError, match="start the command again"):
        run(workers=2, data=tmp_path / "data", methods=("cp-tuning",))
    stderr = capfd.readouterr().err
    assert "has no test.jsonl.gz: add one to test on." in stderr
    assert "Traceback" not in stderr


def test_transfer_starts_from_a_model_of_the_other_sets(request_for, run, data):
    request = request_for("transfer", datasets=("SST-2", "CR"), methods=(), steps=2)
    _, files = run("transfer", datasets=("SST-2", "CR"), methods=(), steps=2)
    text = files["transfer.md"].read_text("utf-8")
    assert "Is it better to start from a model of the other tasks?" in text
    assert "4 examples, from other tasks" in text
    directory = ResultDirectory(request.output)
    outcomes = directory.outcomes()
    assert len(outcomes) == 2 * 6  # data sets, rows
    trainer = CandidateTrainer.of(request)
    planned = plan(request, trainer.backbone_facts)
    [cold, warm] = [one for one in planned if one.cell.dataset == "CR" and one.cell.shots == 4][:2]
    before = {name: t.clone() for name, t in trainer._backbone.state_dict().items()}
    trained = trainer.fit(warm.cell, warm.candidates[0])
    source = trainer._source(warm.cell, warm.candidates[0])
    assert set(source.classes_) == {"SST-2: negative", "SST-2: positive"}
    after = trainer._backbone.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    again = trainer.fit(warm.cell, warm.candidates[0])
    texts = ["the film was great", "the food was cold"]
    first, second = (one.classifier.transform(texts) for one in (trained, again))
    assert np.array_equal(first, second)
    plain = trainer.fit(cold.cell, cold.candidates[0])
    assert not np.array_equal(plain.classifier.transform(texts), first)
