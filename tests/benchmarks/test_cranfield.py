"""The benchmark of ranking: what is judged is never tested; the table has what was measured."""

import gzip
import json

import numpy as np
import pytest

from benchmarks import ranking


@pytest.mark.parametrize("develop", [True, False])
def test_no_query_is_judged_and_tested(develop):
    for draw in range(5):
        judged = ranking.drawn(20, draw)
        tested = ranking.tested(judged, 225, develop)
        assert not set(judged) & set(tested)
        assert max(judged) < 100
        assert (min(tested) >= 100) is not develop
    assert ranking.drawn(5, 0) != ranking.drawn(5, 1)


def test_the_table_has_the_means_over_the_draws():
    measures = {"mrr": 0.5, "recall@100": 0.75, "develop": False, "judged": 5}
    draws = [
        {"row": "x", **measures, "ndcg@10": n, "kept": kept, "if_tuned": 0.2, "if_pair": 0.1}
        for n, kept in ((0.25, []), (0.35, ["tuned view"]))
    ]
    frozen = {**draws[0], "judged": 0, "ndcg@10": 0.24, "row": "bm25"}
    lines = ranking.table([*draws, frozen]).splitlines()
    assert lines[-2].startswith("| bm25 | 0 | 0.240 |")
    assert lines[-1] == (
        "| x | 5 | 0.300 | 0.500 | 0.750 | 0.250 to 0.350 | 1, 0 of 2 | 0.200 | 0.100 |"
    )


def test_a_run_learns_from_the_judged_queries_alone(tmp_path, monkeypatch):
    """With relevance of tested queries turned around, what is kept stays the same."""
    words = ["tea", "tyre", "cat", "tax", "sun", "dog", "ski", "bus"]
    queries = [{"id": f"q{i}", "text": f"about a {words[i % 8]}"} for i in range(104)]
    documents = [{"id": f"d{i}", "text": f"all of a {words[i % 8]} {i}"} for i in range(24)]
    results = []
    for shift in (0, 3):
        root = tmp_path / str(shift) / "Cranfield"
        root.mkdir(parents=True)
        qrels = [
            {"query": q["id"], "doc": f"d{(i + (shift if i >= 100 else 0)) % 8 + 8 * c}", "rel": 1}
            for i, q in enumerate(queries)
            for c in range(3)
        ]
        for name, rows in {"docs": documents, "queries": queries, "qrels": qrels}.items():
            with gzip.open(root / f"{name}.jsonl.gz", "wt") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        monkeypatch.setenv("CPTUNING_DATA", str(root.parent))
        ranking.cranfield.cache_clear()
        ranking.frozen.cache_clear()
        job = {"row": "embedded", "backbone": "embedded", "judged": 3, "draw": 0}
        results.append(ranking.work({**job, "develop": False}))
    ranking.cranfield.cache_clear()
    ranking.frozen.cache_clear()
    one, two = results
    assert one["held_out"] == two["held_out"]
    assert one["kept"] == two["kept"]
    assert one["ndcg@10"] > two["ndcg@10"] + 0.3
    assert np.isfinite([one["if_tuned"], one["if_pair"]]).all()
