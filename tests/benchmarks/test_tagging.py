import gzip
import json
import sys

import pytest
from tests.test_tagger import sentences

from benchmarks.tagging import __main__ as tagging


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data set of two parts under the name of a real one."""
    folder = tmp_path / "data" / "WNUT17"
    folder.mkdir(parents=True)
    rows = [{"tokens": w, "tags": t} for w, t in zip(*sentences(), strict=True)]
    for part in ("train", "test"):
        with gzip.open(folder / f"{part}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    monkeypatch.setenv("CPTUNING_DATA", str(folder.parent))
    tagging.sentences.cache_clear()
    yield tmp_path
    tagging.sentences.cache_clear()


def run(data, encoder, monkeypatch, capsys, *more):
    output = data / "records.jsonl"
    arguments = ["tagging", "--encoder", f"tiny={encoder}", "--sets", "WNUT17", "--shots", "2"]
    arguments += ["--splits", "1", "--output", str(output), *more]
    monkeypatch.setattr(sys, "argv", arguments)
    tagging.main()
    return [json.loads(line) for line in output.read_text().splitlines()], capsys.readouterr().out


def test_rows_are_measured_once_and_make_a_table(data, tiny, monkeypatch, capsys):
    rows = ["--rows", "instant", "prototypes", "fine-tuning"]
    records, printed = run(data, tiny("bert"), monkeypatch, capsys, *rows)
    assert [record["row"] for record in records] == ["instant", "prototypes", "fine-tuning"]
    for record in records:
        low, high = record["interval"]
        assert 0 <= low <= record["f1"] <= high <= 1
        assert set(record["types"]) >= {"city", "day"}
        assert record["sentences"] < 8
    assert records[1]["answer"]["inference"] == "prototype"
    assert records[1]["answer"]["shape_weight"] == 0
    assert printed.count("| 2 | tiny |") == 3
    again, _ = run(data, tiny("bert"), monkeypatch, capsys, *rows)
    assert again == records  # Finished runs are not repeated.
    _, printed = run(data, tiny("bert"), monkeypatch, capsys, "--table")
    assert f"{100 * records[0]['f1']:.1f} (" in printed


def test_a_crf_needs_no_encoder_and_knows_what_it_has_seen(data, monkeypatch, capsys):
    pytest.importorskip("sklearn_crfsuite")
    [record], _ = run(data, "none", monkeypatch, capsys, "--rows", "crf", "--shots", "5")
    assert record["encoder"] == ""
    assert record["f1"] > 0.6


def test_the_table_orders_rows_and_counts_splits():
    records = [
        {"set": "WNUT17", "shots": k, "split": s, "row": row, "encoder": "e", "f1": f1}
        | {"interval": [f1 - 0.1, f1 + 0.1]}
        for k, s, row, f1 in [(20, 0, "instant", 0.5), (5, 0, "tagger", 0.2), (5, 1, "tagger", 0.4)]
    ]
    lines = tagging.table(records).splitlines()
    assert lines[2].startswith("| 5 | e | tagger |")
    assert "30.0 ± 10.0 (2 splits)" in lines[2]
    assert lines[3].startswith("| 20 | e | instant |")
    assert "50.0 (40.0 to 60.0)" in lines[3]
