"""Write docs/promises.md: what is promised, its tests, and what the slow ones found last."""

import json
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.last_runs import last_runs  # noqa: E402

MUTANTS = ROOT / "tests" / "mutants"

_HEAD = """# What we promise and how each promise is tested

Each promise names the tests that hold it; `make test` runs them all, with a fixed small part of
what takes long. What takes long has a command of its own, with its [last figures](#the-last-runs)
below. `python docs/make_promises_page.py` writes this page.

"""

_RUNS = """## The last runs

Two CPU cores that were busy with other work: what counts is whether a promise was kept, not the
speed. [The service](service.md) has rates of an idle machine. These runs were short; the commands'
defaults, or more, are what [the weekly checks](../.github/workflows/slow.yml) run. Not measured
yet: `make coverage`, which is to show 95 % of lines and 90 % of branches.
"""

_NO_MUTANTS = """
## Mutants

`make mutants` changes the sources at 300 random places, by the operators of cosmic-ray, and runs
the tests that belong to them: at least 85 % of the changes are to make a test fail. The sample was
not run as a whole yet.
"""

PROMISES: dict[str, list[tuple[str, str, str]]] = {
    "What comes in": [
        (
            "Bad input is one sentence and exit code 2; nothing is left half-written",
            "tests/cli/test_bad_inputs.py::test_a_command",
            "each of the kinds in [the table](errors.md)",
        ),
        (
            "So it is in Python, and by HTTP with a status of 4xx",
            "tests/cli/test_bad_inputs.py::test_an_expression "
            "tests/cli/test_bad_inputs.py::test_a_request",
            "the same table",
        ),
        (
            "Whatever a file, a folder, a template or a request holds, it is read or refused",
            "tests/fuzz/test_fuzz.py::test_whatever_comes_in_is_read_or_refused",
            "`make fuzz MINUTES=60`",
        ),
        (
            "The estimator gives the right answer in any order of calls",
            "tests/fuzz/test_fuzz.py::test_the_estimator_in_any_order_of_calls",
            "`make fuzz`, beside a simple model of it",
        ),
        (
            "A stranger's files and clients take neither the machine nor its secrets",
            "tests/test_security.py::test_every_threat_names_a_test",
            "[the threat model](../SECURITY.md), each threat with its tests; `make audit`",
        ),
    ],
    "What is interrupted": [
        (
            "A command that is killed and given again ends as if nothing had happened",
            "tests/kills/test_kills.py::"
            "test_what_is_killed_and_given_again_ends_as_if_nothing_had_happened",
            "`make kills RUNS=50`: SIGKILL at random moments and at random writes",
        ),
        (
            "No example is lost that the service has confirmed",
            "tests/serving/test_lifecycle.py::TestExamples "
            "tests/serving/test_taking_turns.py::"
            "test_two_servers_on_one_folder_keep_each_others_examples",
            "`make kills`",
        ),
        (
            "SIGINT and SIGTERM leave a checkpoint, from which the same command goes on",
            "tests/cli/test_fit_command.py::test_sigterm_leaves_a_checkpoint_as_ctrl_c_does "
            "tests/cli/test_fit_command.py::"
            "test_a_fit_that_is_killed_and_then_stopped_ends_as_if_nothing_had_happened",
            "",
        ),
        (
            "A model folder is the old one or the new one, whole and on the disk",
            "tests/files/test_atomic.py::"
            "test_wherever_a_replacement_is_killed_the_old_or_the_new_folder_is_whole",
            "",
        ),
    ],
    "The service": [
        (
            "Beyond its capacity it answers 429, and its memory stays as it is",
            "tests/serving/test_lifecycle.py::TestOverload",
            "`make load`",
        ),
        (
            "One client does not lock the others out",
            "tests/serving/test_attacks.py::"
            "test_a_client_with_950_half_open_connections_does_not_lock_others_out "
            "tests/serving/test_attacks.py::test_a_client_that_takes_no_answer_is_dropped",
            "`make load`",
        ),
        (
            "A reload drops no request and loses no example",
            "tests/serving/test_lifecycle.py::TestReloading",
            "`make load`",
        ),
    ],
    "Numbers": [
        (
            "Every loss and its gradient are finite, in float32 and bfloat16",
            "tests/losses/test_extremes.py::test_the_loss_and_its_gradient_are_finite",
            "identical texts, one example per class, 2,000 classes, collapsed embeddings",
        ),
        (
            "Every inference and calibration gives valid probabilities",
            "tests/inference/test_extremes.py::test_probabilities_are_valid "
            "tests/inference/test_extremes.py::test_a_temperature_is_found_for_any_scores "
            "tests/inference/test_extremes.py::test_label_sets_are_answered_with_finite_scores",
            "the same extremes, and 10,000 examples",
        ),
        (
            "So do taggers and rankers: finite scores, spans that fit",
            "tests/inference/test_extremes.py::"
            "test_words_get_finite_scores_and_sentences_spans_that_fit "
            "tests/inference/test_extremes.py::test_documents_are_ranked_by_finite_scores",
            "the same extremes",
        ),
        (
            "A training that has collapsed is told",
            "tests/test_estimator.py::test_a_training_that_has_collapsed_is_told",
            "",
        ),
    ],
    "Compatibility": [
        (
            "A model that was saved by an earlier version answers as it did",
            "tests/storage/test_format_2.py::test_a_stored_model_answers_as_it_did "
            "tests/storage/test_format_1.py::test_a_folder_of_format_1_answers_as_it_did",
            "each method, label sets, tagger, ranker, exports in floats and 8 bits, kept for ever",
        ),
        (
            "A model of a later version is one clear sentence",
            "tests/storage/test_format_2.py::test_a_newer_format_is_one_clear_sentence",
            "",
        ),
        (
            "The lowest dependencies that are promised work, and the newest",
            "tests/test_packaging.py",
            "`make test-lowest`; a job of the workflow tests the newest",
        ),
    ],
}


def page() -> str:
    """The text of the page."""
    return _HEAD + "\n".join([*map(_section, PROMISES), _runs(), _mutants()])


def _section(title: str) -> str:
    rows = [("What is promised", "Tests", "Besides"), ("---", "---", "---")]
    rows += [
        (promise, "<br>".join(map(_link, tests.split())), besides)
        for promise, tests, besides in PROMISES[title]
    ]
    return f"## {title}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _link(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[`{name.removeprefix('test_') or path}`](../{path})"


def _runs() -> str:
    text = _RUNS
    for name, run in last_runs().items():
        text += (
            f"\n**{name.capitalize()}**, {run['date']}, at {run['commit']}: `{run['command']}`\n\n"
        )
        text += "".join(f"- {line}\n" for line in run["found"])
    return text


def _mutants() -> str:
    """How many changes of the sources the tests notice, and each that they do not."""
    records = MUTANTS / "records.jsonl"
    if not records.exists():
        return _NO_MUTANTS
    rows = {row["id"]: row for row in map(json.loads, records.read_text("utf-8").splitlines())}
    reasons = tomllib.loads((MUTANTS / "survivors.toml").read_text("utf-8"))
    drawn = Counter(row["module"].partition("/")[0] for row in rows.values())
    alive = [row for row in rows.values() if row["verdict"].startswith("survived")]
    living = Counter(row["module"].partition("/")[0] for row in alive)
    text = (
        "\n## Mutants\n\n`make mutants` changes the sources at one random place after another, by "
        "the operators of cosmic-ray, and runs the tests: they must fail. "
        f"{len(rows)} mutants, {len(rows) - len(alive)} killed "
        f"({1 - len(alive) / len(rows):.1%}).\n\n| Folder | Mutants | Killed |\n|---|---|---|\n"
    )
    for group in sorted(drawn):
        text += f"| `{group}/` | {drawn[group]} | {drawn[group] - living[group]} |\n"
    text += "\nThose that survived:\n\n| Where | Change | Why |\n|---|---|---|\n"
    for row in sorted(alive, key=lambda row: (row["module"], row["line"])):
        change = " → ".join(_code(line[1:].strip()) for line in row["change"])
        why = reasons.get(row["id"], "a test is missing")
        text += f"| `{row['module']}`, line {row['line']} | {change} | {why} |\n"
    return text


def _code(line: str) -> str:
    return f"`{line}`".replace("|", "\\|")


if __name__ == "__main__":
    (ROOT / "docs" / "promises.md").write_text(page(), "utf-8")
