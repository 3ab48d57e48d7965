"""The report: ours, the paper's, the majority, the difference; tests by hand; two directories."""

import csv
import json
from dataclasses import replace
from itertools import product
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from cptuning.data import PAPER_DATASETS
from cptuning.errors import CPTuningError
from cptuning.experiments.cells import Cell
from cptuning.experiments.comparison import caveats, compare
from cptuning.experiments.directory import ResultDirectory
from cptuning.experiments.report.builder import build_report
from cptuning.experiments.report.rendering import write_report
from cptuning.experiments.scores import Scores
from cptuning.experiments.statistics import paired_t_test
from cptuning.experiments.studies import METHOD_ROWS, STUDIES, in_study_order

SEEDS = (13, 21, 42, 87, 100)
ROBERTA = {"name": "roberta-large", "weights": "r", "parameters": 355_000_000}
SMALL = {"name": "embedded", "weights": "e", "parameters": 28_000_000}


def made_up(folder, scores, study="main", backbone=SMALL, **changes):
    """A directory with these test accuracies in %, one per seed, by (row, dataset[, variant])."""
    directory, cells = ResultDirectory(folder), []
    for place, values in scores.items():
        row, dataset, variant = (*place, "")[:3]
        for seed, value in zip(SEEDS, values, strict=False):
            key = f"{study}-{row}-{dataset}-{variant}-{seed}".replace("/", "-").replace(" ", "-")
            cell = Cell(study, row, dataset, seed, "pet", (key,), variant=variant, **changes)
            configuration = {
                "method": "pet",
                "settings": {"learning_rate": 1e-4, "batch_size": 8, "steps": 40},
            }
            directory.write(
                "runs",
                key,
                {
                    "key": key,
                    "configuration": configuration,
                    "dev": {"accuracy": 0.9, "log_loss": 0.2},
                    "best_step": 5,
                    "seconds": 0.5,
                    "hardware": {"device": "cpu"},
                },
            )
            test = {"key": key, "accuracy": value / 100, "macro_f1": 0.5, "majority": 0.684}
            test |= {"rows": 408, "dev_accuracy": 0.9}
            if dataset in ("MRPC", "QQP"):
                test["f1"] = 0.6
            directory.write("tests", key, test)
            cells.append(cell)
    directory.add_to_plan(cells, backbone)
    return ResultDirectory(folder)


def lines_of(directory, study, caption="Test accuracy in %"):
    section = build_report(directory, [STUDIES[study]]).sections[0]
    [table] = [table for table in section.tables if table.caption.startswith(caption)]
    return {
        (i, line.name): [v.whole + v.mark for v in line.values]
        for i, line in enumerate(table.lines)
    }


OURS, THEIRS = (80.0, 82.0, 84.0, 81.0, 83.0), (78.0, 79.0, 83.0, 77.0, 80.0)


def test_the_t_test_is_single_tailed_and_paired():
    differences = np.subtract(OURS, THEIRS)
    t = differences.mean() / (differences.std(ddof=1) / sqrt(5))
    by_hand = float(stats.t.sf(t, df=4))
    test = paired_t_test(OURS, THEIRS)
    assert test.p == pytest.approx(by_hand)
    assert test.difference == pytest.approx(2.6)
    assert test.pairs == 5
    assert paired_t_test(THEIRS, OURS).p == pytest.approx(1 - by_hand)
    assert paired_t_test([1.0, 2.0], [0.0, 1.0]).p is None  # all alike: nothing to tell from


def test_ours_the_paper_s_the_majority_and_the_difference(tmp_path):
    directory = made_up(
        tmp_path,
        {("pet", "MRPC"): THEIRS, ("cp-tuning", "MRPC"): OURS},
    )
    lines = lines_of(directory, "main")
    assert lines[0, "majority"] == ["68.4", "68.4", ""]
    assert lines[1, "PET"] == ["79.4 ± 2.3†", "79.4 ± 2.3", "2.0"]
    assert lines[2, "the paper"] == ["66.23", "66.23", "2.0"]
    assert lines[3, "difference"] == ["+13.2", "+13.2", ""]
    assert lines[4, "CP-Tuning"] == ["82.0 ± 1.6", "82.0 ± 1.6", "1.0"]
    assert lines[6, "difference"] == ["+9.4", "+9.4", ""]
    assert lines_of(directory, "main", "F1 in %")[0, "PET"] == ["60.0 ± 0.0", "60.0 ± 0.0"]
    assert lines_of(directory, "main", "Is “CP-Tuning” better?") == {
        (0, "against PET"): ["+2.6 (p –)", "+2.6 (p 0.003)"]
    }


def test_two_splits_have_no_significance_and_no_interval(tmp_path):
    """Their p is 0.03 here, and the ranges of two numbers are no interval."""
    scores = {("pet", "MR"): (70.0, 70.2), ("cp-tuning", "MR"): (80.0, 80.4)}
    assert stats.ttest_rel(*reversed(scores.values()), alternative="greater").pvalue < 0.05
    directory = made_up(tmp_path, scores)
    assert lines_of(directory, "main")[1, "PET"][0] == "70.1 ± 0.1"
    against = lines_of(directory, "main", "Is “CP-Tuning” better?")
    assert against == {(0, "against PET"): ["+10.1 (p –)", "+10.1 (p –)"]}
    section = build_report(directory, [STUDIES["main"]]).sections[0]
    assert not any(table.caption.startswith("95 %") for table in section.tables)


def test_intervals_are_those_of_all_resamples_of_the_splits(tmp_path):
    scores = {("pet", "MR"): THEIRS, ("pet", "CR"): OURS}
    lines = lines_of(made_up(tmp_path, scores), "main", "95 % confidence")
    shown = [[float(end) for end in text.split(" to ")] for text in lines[0, "PET"]]
    for values, ends in zip((THEIRS, OURS, np.mean((THEIRS, OURS), axis=0)), shown, strict=True):
        means = [np.mean(chosen) for chosen in product(values, repeat=5)]
        assert ends == pytest.approx(np.quantile(means, (0.025, 0.975)).tolist(), abs=0.25)


def test_ranks_and_their_correlation_with_the_paper_s_order(tmp_path):
    """The paper has, on MR: fine-tuning below PET below CP-Tuning; and so on CR."""
    scores = {
        ("fine-tuning", "MR"): [60.0] * 3,
        ("pet", "MR"): [80.0] * 3,
        ("cp-tuning", "MR"): [90.0] * 3,
        ("fine-tuning", "CR"): [70.0] * 3,
        ("pet", "CR"): [80.0] * 3,
        ("cp-tuning", "CR"): [75.0] * 3,
    }
    directory = made_up(tmp_path, scores)
    ranks = {name: values[-1] for (_, name), values in lines_of(directory, "main").items()}
    assert {row: ranks[row] for row in ("Fine-tuning", "PET", "CP-Tuning")} == {
        "Fine-tuning": "3.0",
        "PET": "1.5",
        "CP-Tuning": "1.5",
    }
    correlation = lines_of(directory, "main", "Are our rows in the paper's order?")
    [values] = correlation.values()
    assert values[:2] == ["+1.00 (3 rows)", "+0.50 (3 rows)"]


def test_every_split_is_a_dot_that_says_what_it_is(tmp_path):
    directory = made_up(tmp_path, {("pet", "MR"): THEIRS, ("cp-tuning", "MR"): OURS})
    files = write_report(directory, [STUDIES["main"]], "main")
    html = (tmp_path / "main.html").read_text()
    for seed, score in zip(SEEDS, OURS, strict=True):
        assert f"<title>CP-Tuning, split {seed}: {score:.1f} %</title>" in html
    figures = {path.name: path.read_bytes() for path in files if path.parent.name == "figures"}
    assert sorted(figures) == [f"main-splits-mr.{kind}" for kind in ("pdf", "svg")]
    assert figures["main-splits-mr.pdf"].startswith(b"%PDF")
    assert b"<svg" in figures["main-splits-mr.svg"]
    write_report(directory, [STUDIES["main"]], "main")
    again = {name: (tmp_path / "figures" / name).read_bytes() for name in figures}
    assert again == figures


def test_the_index_links_every_report(tmp_path, browser):
    directory = made_up(tmp_path, {("pet", "MR"): THEIRS, ("cp-tuning", "MR"): OURS})
    directory = made_up(tmp_path, {("k = 1 nearest", "MR"): OURS}, "inference")
    missing = Cell("inference", "prototypes", "MR", 13, "pet", ("missing",))
    directory.add_to_plan([missing], SMALL)
    for study in ("main", "inference"):
        write_report(ResultDirectory(tmp_path), [STUDIES[study]], study)
    page = browser.new_page()
    page.goto((tmp_path / "inference.html").as_uri())
    page.get_by_role("link", name="All studies").click()
    assert page.get_by_text("5 of 6 cells finished").is_visible()
    page.get_by_role("link", name=STUDIES["main"].title).click()
    assert page.url.endswith("main.html")


def test_only_a_study_with_the_paper_s_numbers_says_that_it_has_them(tmp_path):
    made_up(tmp_path, {("pet", "MR"): THEIRS})
    directory = made_up(tmp_path, {("pet, best step", "MR"): THEIRS}, "selection")
    for study, promised in (("main", True), ("selection", False)):
        write_report(directory, [STUDIES[study]], study)
        html = (tmp_path / f"{study}.html").read_text()
        assert ("compared with the paper" in html) == promised
        assert ("The paper&#x27;s backbone" in html) == promised
        assert ("not the paper&#x27;s RoBERTa-large" in html) == promised


def test_the_test_over_tasks_is_the_paper_s(tmp_path):
    paper = {"SST-2": (90.0, 80.0), "MR": (85.0, 82.0), "CR": (88.0, 87.0)}
    scores = {}
    for name, (own, pet) in paper.items():
        scores["cp-tuning", name] = [own] * 5
        scores["pet", name] = [pet] * 5
    found = Scores.of(made_up(tmp_path, scores).outcomes())
    expected = stats.ttest_rel((90, 85, 88), (80, 82, 87), alternative="greater").pvalue
    test = found.over_tasks("cp-tuning", "pet")
    assert test.p == pytest.approx(expected)
    assert test.pairs == 3


def test_the_best_of_ours_is_bold_and_another_backbone_is_pointed_out(tmp_path):
    directory = made_up(tmp_path, {("pet", "MR"): THEIRS, ("cp-tuning", "MR"): OURS})
    files = {
        path.name: path.read_text()
        for path in write_report(directory, [STUDIES["main"]], "main")
        if path.parent == tmp_path
    }
    assert {"main.md", "main.tex", "main.csv", "main.html", "index.html"} <= set(files)
    warning = "The backbone is embedded (28.0 M parameters), not the paper&#x27;s RoBERTa-large"
    assert warning in files["main.html"]
    assert warning.replace("&#x27;", "'") in files["main.md"]
    assert "| CP-Tuning | **82.0 ± 1.6** | **82.0 ± 1.6** | 1.0 |" in files["main.md"]
    assert "<b>82.0 ± 1.6</b>" in files["main.html"]
    line = r"CP-Tuning & \textbf{82.0 $\pm$ 1.6} & \textbf{82.0 $\pm$ 1.6} & 1.0 \\"
    assert line in files["main.tex"]
    assert r"79.4 $\pm$ 2.3$^\dagger$" in files["main.tex"]
    for outside in ("http://", "https://", "<script"):
        assert outside not in files["main.html"].replace("http://www.w3.org", "")


def test_the_paper_s_own_backbone_needs_no_warning(tmp_path):
    directory = made_up(tmp_path, {("cp-tuning", "MR"): OURS}, backbone=ROBERTA)
    assert build_report(directory, [STUDIES["main"]]).warnings == []


def test_csv_has_one_row_per_seed(tmp_path):
    directory = made_up(tmp_path, {("cp-tuning", "MRPC"): OURS})
    write_report(directory, [STUDIES["main"]], "main")
    rows = list(csv.DictReader((tmp_path / "main.csv").open()))
    assert [row["seed"] for row in rows] == [str(seed) for seed in SEEDS]
    assert rows[0]["accuracy"] == "0.8"
    assert rows[0]["f1"] == "0.6"
    assert rows[0]["learning_rate"] == "0.0001"


def test_prompts_have_mean_deviation_and_tests_on_both(tmp_path):
    scores = {}
    for number, prompt in enumerate(("a", "b", "c")):
        scores["cp-tuning", "MR", prompt] = [80.0 + number, 81.0 + number, 80.5 + 2 * number]
        scores["pet", "MR", prompt] = [70.0 + 5 * number, 72.0 + 6 * number, 71.0 + 4 * number]
    lines = lines_of(made_up(tmp_path, scores, "prompts"), "prompts", "Five prompts")
    own = np.mean([1.0, 1.0, 2.0])
    pet = np.mean([5.0, 6.0, 4.0])
    values = lines[0, "MR"]
    assert values[0].endswith(f"± {own:.1f}")
    assert values[1].endswith(f"± {pet:.1f}")
    means = {
        row: np.mean([scores[row, "MR", p] for p in "abc"], axis=0) for row in ("cp-tuning", "pet")
    }
    better = stats.ttest_rel(means["cp-tuning"], means["pet"], alternative="greater").pvalue
    assert values[2].endswith(f"(p {better:.3f})")
    steadier = stats.ttest_rel((5, 6, 4), (1, 1, 2), alternative="greater").pvalue
    assert values[3] == f"+{pet - own:.1f} (p {steadier:.3f})"
    assert lines[1, "the paper"][:2] == ["88.38 ± 1.46", "86.28 ± 1.70"]


def test_parameters_are_four_plots_with_one_curve_per_data_set(tmp_path):
    rows = [row.name for row in STUDIES["parameters"].rows("MR")]
    scores = {(row, name): OURS[:2] for row in rows for name in ("MR", "MRPC")}
    directory = made_up(tmp_path, scores, "parameters")
    files = write_report(directory, [STUDIES["parameters"]], "parameters")
    pictures = sorted(path.name for path in files if path.suffix == ".png")
    pictures = [name for name in pictures if "splits" not in name]
    assert pictures == [
        "parameters-contrastive-weight.png",
        "parameters-margin.png",
        "parameters-tau-n.png",
        "parameters-xi.png",
    ]
    html = (tmp_path / "parameters.html").read_text()
    assert html.count("<svg") == 4 + 2
    assert "MRPC" in html[html.index("<svg") : html.index("</svg>")]
    tables = build_report(directory, [STUDIES["parameters"]]).sections[0].tables
    assert [table.lines[1].name for table in tables] == ["m = 0", "1/τn = 1", "ξ = 1", "λ = 0.1"]
    assert tables[2].caption == "Test accuracy in %, by ξ"


def test_the_main_table_has_a_picture_of_the_averages(tmp_path):
    names = ("SST-2", "MR")
    scores = {(row, name): OURS for row in ("pet", "cp-tuning") for name in names}
    directory = made_up(tmp_path, scores | {("warp", "MR"): THEIRS})
    [picture] = build_report(directory, [STUDIES["main"]]).sections[0].pictures
    assert "PET" in picture.svg
    assert "CP-Tuning" in picture.svg
    assert "WARP" not in picture.svg  # It has no average yet.
    assert picture.files["png"].startswith(b"\x89PNG")


def test_a_table_in_latex_has_a_label_and_separates_groups_of_rows(tmp_path):
    directory = made_up(tmp_path, {("pet", "MR"): THEIRS, ("cp-tuning", "MR"): OURS})
    write_report(directory, [STUDIES["main"]], "main")
    latex = (tmp_path / "main.tex").read_text()
    assert [f"\\label{{tab:main-{n}}}" in latex for n in (1, 3, 4)] == [True, True, False]
    assert latex.count("\\addlinespace") == 2
    assert latex.count("\\begin{table*}") == latex.count("\\end{table*}") == 3


def test_the_two_rules_for_the_step_are_compared_method_by_method(tmp_path):
    scores = {
        ("pet, best step", "MR"): THEIRS,
        ("pet, last step", "MR"): OURS,
        ("warp, best step", "MR"): OURS,
        ("warp, last step", "MR"): THEIRS,
    }
    directory = made_up(tmp_path, scores, "selection")
    lines = lines_of(directory, "selection", "Is the last step better")
    p = stats.ttest_rel(OURS, THEIRS, alternative="greater").pvalue
    assert lines == {
        (0, "PET"): ["+2.6 (p –)", f"+2.6 (p {p:.3f})"],
        (1, "WARP"): ["−2.6 (p –)", f"−2.6 (p {1 - p:.3f})"],
    }


def test_a_fast_version_never_takes_the_place_of_a_whole_one(tmp_path):
    whole = Cell("main", "pet", "MR", 13, "pet", ("a", "b", "c"))
    fast = replace(whole, keys=("a", "b"), fast=True)
    directory = ResultDirectory(tmp_path)
    directory.add_to_plan([fast], SMALL)
    directory.add_to_plan([replace(fast, seed=21)], SMALL)
    directory.add_to_plan([whole], SMALL)
    with pytest.raises(CPTuningError, match=r"holds the whole of this study: choose another"):
        directory.add_to_plan([fast], SMALL)
    assert directory.planned() == [whole, replace(fast, seed=21)]


def test_what_tuning_chose_is_in_the_report(tmp_path):
    directory = made_up(tmp_path, {("cp-tuning", "MR"): OURS, ("pet", "MR"): THEIRS})
    tried = [
        {"margin": 0.3, "tau_n": 0.125, "xi": 2.0, "contrastive_weight": 0.5, "k": 3},
        {"margin": 0.1, "tau_n": 0.25, "xi": 4.0, "contrastive_weight": 0.7, "k": 9},
    ]
    cells = []
    for cell in directory.planned():
        run = directory.run(cell.keys[0])
        keys = []
        for number, values in enumerate(tried if cell.row == "cp-tuning" else []):
            key = f"{cell.keys[0]}-{number}"
            settings = run["configuration"]["settings"] | values | {"inference": "knn"}
            # Dev prefers the second on all splits but the first.
            accuracy = 0.9 if (number == 1) == (cell.seed != SEEDS[0]) else 0.8
            configuration = run["configuration"] | {"settings": settings}
            dev = {"accuracy": accuracy, "log_loss": 0.1}
            directory.write(
                "runs", key, run | {"key": key, "configuration": configuration, "dev": dev}
            )
            directory.write("tests", key, directory.test(cell.keys[0]) | {"key": key})
            keys.append(key)
        if keys:
            cells.append(replace(cell, keys=tuple(keys)))
    directory.add_to_plan(cells, SMALL)
    directory = ResultDirectory(tmp_path)
    tables = build_report(directory, [STUDIES["main"]]).sections[0].tables
    (table,) = [table for table in tables if table.caption.startswith("What the tuning chose")]
    (line,) = table.lines
    assert line.name == "CP-Tuning, MR"
    assert [value.whole for value in line.values] == [
        "0.1 (0.1 to 0.3)",
        "4 (4 to 8)",
        "4 (2 to 4)",
        "0.7 (0.5 to 0.7)",
        "9 (3 to 9)",
    ]
    write_report(directory, [STUDIES["main"]], "main")
    rows = list(csv.DictReader((tmp_path / "main.csv").read_text().splitlines()))
    ours = [row for row in rows if row["row"] == "cp-tuning"]
    assert [row["margin"] for row in ours] == ["0.3", "0.1", "0.1", "0.1", "0.1"]
    assert {row["margin"] for row in rows if row["row"] == "pet"} == {""}


def test_what_is_missing_failed_or_fast_is_said(tmp_path):
    directory = made_up(tmp_path, {("cp-tuning", "MR"): OURS}, fast=True)
    failed = Cell("main", "pet", "MR", 13, "pet", ("failed",))
    missing = Cell("main", "warp", "MR", 13, "warp", ("missing",))
    run = json.loads((tmp_path / "runs" / "main-cp-tuning-MR--13.json").read_text())
    del run["dev"]
    directory.write("runs", "failed", run | {"failed": "The word is not in the vocabulary."})
    directory.add_to_plan([failed, missing], SMALL)
    section = build_report(ResultDirectory(tmp_path), [STUDIES["main"]]).sections[0]
    assert section.warnings == [
        "Not finished: 1 of 7 cells are still to be run. Shown: splits 21, 42, 87, 100, "
        "for which every row is finished.",
        "PET on MR failed in 1 run: The word is not in the vocabulary.",
    ]
    assert any("fast version" in fact for fact in section.facts)
    assert any("MR 408 (2,000)" in fact for fact in section.facts)


def test_rows_of_an_unfinished_study_are_means_over_the_same_splits(tmp_path):
    directory = made_up(tmp_path, {("pet", "MR"): THEIRS, ("cp-tuning", "MR"): OURS})
    later = [Cell("main", "pet", name, 87, "pet", (f"later {name}",)) for name in ("MR", "CR")]
    directory.add_to_plan(later, SMALL)
    directory = ResultDirectory(tmp_path)
    kept = [0, 1, 2, 4]  # all but split 87, the fourth
    lines = {name: values for (_, name), values in lines_of(directory, "main").items()}
    for name, scores in (("PET", THEIRS), ("CP-Tuning", OURS)):
        assert lines[name][0].startswith(f"{np.mean([scores[i] for i in kept]):.1f} ± ")
    assert (
        "Shown: splits 13, 21, 42, 100, for"
        in build_report(directory, [STUDIES["main"]]).sections[0].warnings[0]
    )


def test_without_a_whole_split_all_that_is_there_is_shown_and_said(tmp_path):
    directory = made_up(tmp_path, {("cp-tuning", "MR"): OURS[:2]})
    directory.add_to_plan(
        [Cell("main", "pet", "MR", seed, "pet", (f"later {seed}",)) for seed in SEEDS[:2]], SMALL
    )
    [section] = build_report(ResultDirectory(tmp_path), [STUDIES["main"]]).sections
    assert section.tables[0].lines[1].values[0].whole.startswith("81.0")
    assert section.warnings[0].endswith("Rows may be means over different splits.")


def test_a_run_that_was_paused_does_not_change_what_one_takes(tmp_path):
    directory = made_up(tmp_path, {("pet", "MR"): THEIRS})
    key = "main-pet-MR--13"
    directory.write("runs", key, directory.run(key) | {"seconds": 300.0})
    write_report(ResultDirectory(tmp_path), [STUDIES["main"]], "main")
    report = (tmp_path / "main.md").read_text()
    assert "A run takes, in the median: pet 0.50 s." in report
    assert "5 training runs, 5 min in total, on cpu." in report


def test_two_directories_are_compared_split_by_split(tmp_path):
    made_up(tmp_path / "a", {("pet", "MR"): THEIRS, ("warp", "MR"): THEIRS})
    made_up(tmp_path / "b", {("pet", "MR"): OURS[:4]}, backbone=ROBERTA)
    (found,) = compare(tmp_path / "a", tmp_path / "b")
    assert (found.study, found.row, found.dataset) == ("main", "pet", "MR")
    assert found.first == pytest.approx(np.mean(THEIRS[:4]))
    assert found.test == paired_t_test(OURS[:4], THEIRS[:4])


def test_variants_of_a_split_are_one_pair(tmp_path):
    ours, theirs = ({("pet", "MR", way): by for way in "ab"} for by in (OURS, THEIRS))
    made_up(tmp_path / "a", theirs, "unbalanced")
    made_up(tmp_path / "b", ours, "unbalanced")
    (found,) = compare(tmp_path / "a", tmp_path / "b")
    assert found.test == paired_t_test(OURS, THEIRS)


def test_a_comparison_says_what_else_differs(tmp_path):
    one, other = made_up(tmp_path / "a", {("pet", "MR"): OURS}), tmp_path / "b"
    assert caveats(one.folder, one.folder) == []
    made_up(other, {("pet", "MR"): THEIRS}, backbone=ROBERTA)
    assert caveats(one.folder, other) == ["The backbones differ: embedded and roberta-large."]
    tests = ResultDirectory(other)
    for cell in tests.planned():
        (tests.folder / "tests" / f"{cell.keys[0]}.json").unlink()
        tests.write("tests", cell.keys[0], {"accuracy": 0.5, "sha256": "of another file"})
    assert caveats(one.folder, other)[1:] == ["The test sets differ: MR."]
    grid = [replace(cell, keys=(*cell.keys, "more")) for cell in ResultDirectory(other).planned()]
    ResultDirectory(other).add_to_plan(grid, ROBERTA)
    for cell in grid:
        ResultDirectory(other).write("runs", "more", one.run(cell.keys[0]))
    assert caveats(one.folder, other)[2:] == [
        "Dev chose among more configurations in one of them than in the other: pet."
    ]


def test_embeddings_are_drawn_with_their_accuracy(run):
    _, files = run("tsne", datasets=("CR",), methods=("cp-tuning",), seeds=(13, 21))
    html = files["tsne.html"].read_text()
    assert "CR, split 13: 8 training examples (diamonds) and 12 test examples" in html
    assert html.count("<svg") == 1  # a picture of one split


def test_step_budgets_and_candidate_caps_are_stated(run):
    _, files = run(methods=("lm-bff-l", "cp-tuning"), steps=2)
    report = files["main.md"].read_text()
    assert "Steps of a run: lm-bff-l 2 (after a search: " in report
    assert "; cp-tuning 2." in report


def test_rows_stand_in_the_order_of_the_study_whenever_they_were_added(tmp_path):
    made_up(tmp_path, {("cp-tuning", "MR"): OURS})
    directory = made_up(tmp_path, {("pet", "MR"): THEIRS})
    assert Scores.of(in_study_order(directory.outcomes())).rows == ["pet", "cp-tuning"]


def test_the_whole_main_table_fits_on_a_page(tmp_path, browser):
    """With every row that can be asked for: the mean, the last column, is what people look for."""
    directory = made_up(
        tmp_path, {(row, name): THEIRS for row in METHOD_ROWS for name in PAPER_DATASETS}
    )
    write_report(directory, [STUDIES["main"]], "main")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((tmp_path / "main.html").as_uri())
    fits = "element => element.scrollWidth <= element.clientWidth"
    tables = page.locator(".scroll").all()
    assert len(tables) == 4
    assert all(table.evaluate(fits) for table in tables)
