"""Cranfield: does the ranker learn from a few judged queries? Beside BM25 and frozen vectors.

    CPTUNING_DATA=folder python -m benchmarks.ranking [--encoders embedded gte-small=FOLDER]
        [--judged 0 5 20] [--draws 5] [--develop]

Judged queries are drawn from the first 100 of Cranfield's 225; the other 125 are the test. With
``--develop`` it is the other of the first 100 that are ranked, which is how settings are chosen.
With 0 judged queries a row is its frozen encoder. A run is a line of ``ranking.jsonl`` and is not
repeated; the table is written to ``ranking.md``.
"""

import argparse
import gzip
import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runs import Job, run_all
from cptuning import CPTuningRanker
from cptuning.data import Examples
from cptuning.data.judgements import IdentifiedTexts, as_relevance
from cptuning.errors import CPTuningError
from cptuning.estimator.text_model import seed_of
from cptuning.files.atomic import write_whole
from cptuning.inference.ranked_documents import RankingPredictor, with_tuned
from cptuning.inference.ranking_metrics import ndcg, recall, reciprocal_rank
from cptuning.methods.ranking import JudgedVectors, fit_ranking, pair_view, tuned_view

HERE = Path(__file__).parent
RECORDS, TABLE = HERE / "ranking.jsonl", HERE / "ranking.md"
POOL = 100
DEPTH = 1000
MEASURES = {"ndcg@10": "nDCG@10", "mrr": "MRR", "recall@100": "recall@100"}


@cache
def cranfield() -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, int]]]:
    """Documents and queries by id, and the grades of documents by query."""
    root = os.environ.get("CPTUNING_DATA")
    if not root:
        raise CPTuningError("Set CPTUNING_DATA to the folder of the data sets.")

    def rows(name: str) -> list[dict[str, Any]]:
        with gzip.open(Path(root, "Cranfield", f"{name}.jsonl.gz"), "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    grades: dict[str, dict[str, int]] = {}
    for row in rows("qrels"):
        grades.setdefault(row["query"], {})[row["doc"]] = row["rel"]
    texts = ({row["id"]: row["text"] for row in rows(name)} for name in ("docs", "queries"))
    documents, queries = texts
    return documents, queries, grades


def drawn(judged: int, draw: int) -> list[int]:
    """The places of the judged queries of a draw.

    >>> len(set(drawn(20, 3))), max(drawn(20, 3)) < 100, drawn(0, 3)
    (20, True, [])
    """
    return np.random.default_rng([judged, draw]).permutation(POOL)[:judged].tolist()


def tested(judged: Sequence[int], n: int, develop: bool) -> list[int]:
    """The places of the queries that are ranked.

    >>> len(tested([3], 225, develop=False)), len(tested([3], 225, develop=True))
    (125, 99)
    """
    return [q for q in range(POOL) if q not in judged] if develop else list(range(POOL, n))


def measured(rankings: Sequence[Sequence[str]], queries: Sequence[str]) -> dict[str, float]:
    """The mean measures of some queries' rankings."""
    _, _, grades = cranfield()
    pairs = [(found, grades[name]) for found, name in zip(rankings, queries, strict=True)]
    return {
        "ndcg@10": float(np.mean([ndcg(*pair) for pair in pairs])),
        "mrr": float(np.mean([reciprocal_rank(*pair) for pair in pairs])),
        "recall@100": float(np.mean([recall(*pair, 100) for pair in pairs])),
    }


@cache
def frozen(backbone: str) -> tuple[CPTuningRanker, np.ndarray, float]:
    """A ranker with nothing judged, the queries' vectors, and how long reading took."""
    documents, queries, _ = cranfield()
    began = time.perf_counter()
    ranker = CPTuningRanker(backbone, verbose=False).fit([], documents, {})
    vectors = ranker.predictor_.encoder.embed(Examples(tuple(queries.values())))
    return ranker, vectors, time.perf_counter() - began


def rankings(predictor: RankingPredictor, vectors: np.ndarray) -> list[list[str]]:
    """The ids of the best documents for queries, given as vectors of the sentence view."""
    tuned = predictor.encoder.tuned
    embedded = vectors if tuned is None else tuned.joined(vectors)
    ids = predictor.label_space.classes
    return [[ids[i] for i in rows] for rows, _ in predictor.ranked_rows(embedded, DEPTH)]


def learned_run(job: Job) -> Job:
    """A draw's judged queries teach the ranker: as fitted, and with each view whether kept or not.

    It is what ``CPTuningRanker.fit`` does, on documents that are read once.
    """
    documents, queries, grades = cranfield()
    names = list(queries)
    ranker, vectors, reading = frozen(job["backbone"])
    predictor, settings = ranker.predictor_, ranker.settings_
    rows = drawn(job["judged"], job["draw"])
    asked = tested(rows, len(names), job["develop"])

    def scores(one: RankingPredictor) -> dict[str, float]:
        return measured(rankings(one, vectors[asked]), [names[q] for q in asked])

    began = time.perf_counter()
    result = scores(predictor)
    if not rows:
        return {**result, "kept": [], "seconds": 0.0, "reading": round(reading, 1)}
    chosen = {names[q]: queries[names[q]] for q in rows}
    judged = as_relevance(
        {name: grades[name] for name in chosen},
        IdentifiedTexts.of(chosen, "queries"),
        IdentifiedTexts.of(documents, "documents"),
    )
    known = JudgedVectors(vectors[rows], predictor.support.embeddings, judged)
    seed = seed_of(job["draw"])
    began = time.perf_counter()
    fitted = fit_ranking(known, settings, seed)
    seconds = time.perf_counter() - began
    kept = predictor if fitted.tuned is None else with_tuned(predictor, fitted.tuned)
    everything = range(len(rows))
    always_tuned = with_tuned(predictor, tuned_view(known, everything, settings, seed))
    always_pair = replace(predictor, pair=pair_view(known, everything, settings))
    return {
        **scores(replace(kept, pair=fitted.pair, rerank=settings.rerank)),
        "kept": fitted.facts["kept"],
        "held_out": fitted.facts["held_out_ndcg"],
        "if_tuned": scores(always_tuned)["ndcg@10"],
        "if_pair": scores(always_pair)["ndcg@10"],
        "seconds": round(seconds, 2),
        "reading": round(reading, 1),
    }


def bm25_run(job: Job) -> Job:
    """BM25 with its usual settings and English stop words."""
    import bm25s

    documents, queries, _ = cranfield()
    names, ids = list(queries), list(documents)
    asked = tested([], len(names), job["develop"])
    began = time.perf_counter()
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(documents.values()), stopwords="en", show_progress=False))
    words = bm25s.tokenize(
        [queries[names[q]] for q in asked], stopwords="en", return_ids=False, show_progress=False
    )
    scores = np.array([index.get_scores(one) for one in words])
    orders = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    found = [[ids[i] for i in order] for order in orders]
    seconds = round(time.perf_counter() - began, 2)
    return {**measured(found, [names[q] for q in asked]), "kept": [], "seconds": seconds}


def work(job: Job) -> Job:
    """The result of a job."""
    known = {"bm25": bm25_run}
    return known.get(job["row"], learned_run)(job)


def fingerprint() -> str:
    """The hash of the data."""
    return sha256(json.dumps(cranfield()).encode()).hexdigest()[:16]


def table(records: Sequence[Job]) -> str:
    """The records as Markdown: the mean over the draws, the least and the greatest."""
    lines = [
        "# Ranking Cranfield with few judged queries",
        "",
        "Written by `python -m benchmarks.ranking`: 1,400 abstracts; judged queries are drawn",
        "from the first 100, and the other 125 are ranked. Means over the draws, the least and the",
        "greatest nDCG@10, and in how many draws the tuned view and the pair view were kept. With",
        "0 judged queries an encoder is as it is (frozen).",
        "",
        f"| | judged | {' | '.join(MEASURES.values())} | least to greatest | kept |"
        " nDCG@10 if the tuned view were always kept | and the pair view |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    groups: dict[tuple[str, int], list[Job]] = {}
    for record in records:
        groups.setdefault((record["row"], record["judged"]), []).append(record)
    order = {"bm25": 0, "embedded": 1}
    for (row, judged), found in sorted(
        groups.items(), key=lambda one: (order.get(one[0][0], 2), *one[0])
    ):
        means = [f"{np.mean([r[name] for r in found]):.3f}" for name in MEASURES]
        gains = [r["ndcg@10"] for r in found]
        spread = "–" if len(found) == 1 else f"{min(gains):.3f} to {max(gains):.3f}"
        kept = [sum(view in r["kept"] for r in found) for view in ("tuned view", "pair view")]
        always = [
            "–" if not judged else f"{np.mean([r[name] for r in found]):.3f}"
            for name in ("if_tuned", "if_pair")
        ]
        counts = "–" if not judged else f"{kept[0]}, {kept[1]} of {len(found)}"
        cells = [row, str(judged), *means, spread, counts, *always]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoders", nargs="*", default=["bm25", "embedded"])
    parser.add_argument("--judged", type=int, nargs="*", default=[0, 5, 20])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--develop", action="store_true")
    parser.add_argument("--output", type=Path, default=RECORDS)
    chosen = parser.parse_args(arguments)
    jobs, folders, data = [], {}, fingerprint()
    for encoder in chosen.encoders:
        row, _, folder = encoder.partition("=")
        folders[row] = folder or row
        counts = [0] if row == "bm25" else chosen.judged
        jobs += [
            {
                "row": row,
                "judged": n,
                "draw": draw,
                "develop": chosen.develop,
                "data": data,
            }
            for n in counts
            for draw in range(chosen.draws if n else 1)
        ]
    run_all(jobs, lambda job: work({**job, "backbone": folders[job["row"]]}), chosen.output)
    if not chosen.develop:
        everything = [json.loads(line) for line in chosen.output.read_text().splitlines()]
        text = table([r for r in everything if not r["develop"]])
        if chosen.output == RECORDS:
            write_whole(TABLE, text)
        print(text)


if __name__ == "__main__":
    main()
