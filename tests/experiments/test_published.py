"""The published results: their records are still found, and still make the published reports."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from cptuning.experiments.directory import ResultDirectory
from cptuning.experiments.planning import plan
from cptuning.experiments.reproduce import reproduce
from cptuning.experiments.request import Request
from cptuning.experiments.run_keys import (
    CHANGES,
    AddedSetting,
    current_form,
    first_form,
    key_of,
)
from cptuning.experiments.studies import STUDIES, tsne

PUBLISHED = Path(__file__).parents[2] / "results" / "mini-v1"
RECORDS = ResultDirectory(PUBLISHED)


def no_layout(embeddings):
    """In place of t-SNE, which takes long and is not part of any table."""
    return embeddings[:, :2].astype(float), "t-SNE"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return shutil.copytree(PUBLISHED, tmp_path_factory.mktemp("published") / "embedded")


@pytest.mark.parametrize("study", [name for name, study in STUDIES.items() if study.in_all])
def test_the_records_make_the_published_report_to_the_letter(study, copy, monkeypatch):
    monkeypatch.setattr(tsne, "project", no_layout)
    names = [f"{study}.md", f"{study}.csv", f"{study}.tex"]
    for name in names:
        (copy / name).unlink()
    reproduce(Request(study, output=copy, report_only=True), lambda _: None)
    for name in names:
        assert (copy / name).read_text("utf-8") == (PUBLISHED / name).read_text("utf-8"), name


def test_every_published_run_has_the_key_that_its_configuration_has_today():
    with gzip.open(PUBLISHED / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
        runs = [record for kind, record in map(json.loads, lines) if kind == "runs"]
    assert len(runs) == 9760
    for stored in runs:
        assert key_of(stored["configuration"]) == stored["key"]
        read = RECORDS.run(stored["key"])["configuration"]
        assert key_of(read) == stored["key"]
        assert "words_a_class" not in read["settings"]


def test_a_run_has_the_same_settings_as_the_published_ones_and_those_added_since(request_for):
    added = {change.setting for change in CHANGES if isinstance(change, AddedSetting)}
    published = {}
    for cell in RECORDS.planned():
        run = RECORDS.run(cell.keys[0])["configuration"]
        published.setdefault(cell.method, set(run["settings"]))
    for task in plan(request_for(methods=()), RECORDS.backbone):
        settings = task.candidates[0].configuration["settings"]
        found = set(current_form(first_form(settings)))
        assert found - added == published[task.cell.method] - added
