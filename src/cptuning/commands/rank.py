"""cptuning rank: documents that answer a query, best first; fitted, searched and measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, print_table, rounded, say
from cptuning.data.examples import one_line
from cptuning.data.judgements import IdentifiedTexts
from cptuning.data.ranking_files import Triple, read_identified, read_qrels, read_run, run_lines
from cptuning.errors import CPTuningError
from cptuning.files.atomic import write_whole
from cptuning.inference.ranking_metrics import ndcg, recall, reciprocal_rank

if TYPE_CHECKING:
    from cptuning.estimator import CPTuningRanker

rank = typer.Typer(
    help="Rank documents by how well they answer a query.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

IdColumn = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="The column of the ids.")
]
Queries = Annotated[
    str,
    typer.Argument(metavar="QUERIES", help="A file of queries with ids."),
]
# Documents that a measurement looks at for each query.
_DEPTH = 1000


@rank.command()
def fit(
    documents: Annotated[
        str, typer.Argument(metavar="DOCUMENTS", help="A file of documents with ids.")
    ],
    output: Annotated[Path, typer.Option(metavar="MODEL", help="The folder for the ranker.")],
    queries: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of judged queries with ids.")
    ] = None,
    qrels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Which documents answer them: query, 0, document, grade."
        ),
    ] = None,
    backbone: options.Backbone = "embedded",
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="default, or instant (learns without training).")
    ] = "default",
    seed: options.Seed = 0,
    settings: options.Settings = None,
    device: options.Device = "auto",
    id: IdColumn = None,
    text: options.TextColumn = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Read documents and, if some queries are judged, learn from them.

    What was learned is kept only if queries that are left out say that it pays.
    """
    from cptuning.estimator import CPTuningRanker
    from cptuning.storage import check_place

    if (queries is None) != (qrels is None):
        raise CPTuningError("Give --queries and --qrels together, or neither.")
    ranker = CPTuningRanker(
        backbone,
        preset,
        seed,
        device=device,
        verbose=not quiet,
        **options.parse_settings_of(CPTuningRanker, settings),
    )
    check_place(output)
    listed = read_identified(documents, id=id, text=text)
    asked = IdentifiedTexts.of({}, "queries")
    judged: list[Triple] = []
    if queries is not None and qrels is not None:
        asked = read_identified(queries)
        judged = _of_these(read_qrels(qrels), asked, qrels)
    ranker.fit(asked, listed, judged)
    ranker.save(output)
    facts = ranker.training_
    if as_json:
        names = ("judged_queries", "kept", "held_out_ndcg")
        known = {name: facts[name] for name in names if name in facts}
        print_json({"model": str(output), "documents": len(listed), **known})
        return
    if not quiet:
        for view, score in facts.get("held_out_ndcg", {}).items():
            say(f"nDCG@10 of judged queries that were left out, with the {view}: {score:.3f}")
        if judged:
            say(f"Kept of what they taught: {', '.join(facts['kept']) or 'nothing'}.")
    typer.echo(f"{output} ranks {len(listed)} documents.")


@rank.command()
def search(
    model: options.Model,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="A query; or use --queries.")
    ] = None,
    queries: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of queries with ids.")
    ] = None,
    top_k: Annotated[
        int, typer.Option("--top", "-k", metavar="N", min=1, help="How many documents per query.")
    ] = 10,
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the rankings of --queries as a TREC run file."),
    ] = None,
    id: IdColumn = None,
    text: options.TextColumn = None,
    as_json: options.Json = False,
) -> None:
    """Show the documents that answer a query, or write a run file for many."""
    if (query is None) == (queries is None):
        raise CPTuningError("Give a query, or a file of them with --queries.")
    if output is not None and queries is None:
        raise CPTuningError("--output is for --queries: a run file needs the ids of queries.")
    if query is not None and not query.strip():
        raise CPTuningError("The query is empty: give some words.")
    ranker = _ranker(model)
    if query is not None:
        asked = IdentifiedTexts.of({"query": query}, "queries")
    else:
        assert queries is not None
        asked = read_identified(queries, id=id, text=text)
    found = ranker.predictor_.rank(asked.examples, top_k)
    if output is not None:
        rankings = {
            name: [(one.document, one.score) for one in ranking]
            for name, ranking in zip(asked.ids, found, strict=True)
        }
        write_whole(output, "".join(run_lines(rankings)))
        say(f"The rankings of {len(asked)} queries are in {output}.")
        return
    if as_json:
        listed = [
            {
                "query": str(name),
                "documents": [
                    {"id": one.document, "score": round(one.score, 6), "text": one.text}
                    for one in ranking
                ],
            }
            for name, ranking in zip(asked.ids, found, strict=True)
        ]
        print_json(listed[0]["documents"] if query is not None else listed)
        return
    for name, ranking in zip(asked.ids, found, strict=True):
        rows = [(str(one.document), one_line(one.text, 120), f"{one.score:.3f}") for one in ranking]
        header = ("document" if query is not None else f"for {name}", "text", "score")
        print_table(rows, header=header, numbers=1)


@rank.command()
def evaluate(
    model: options.Model,
    queries: Queries,
    qrels: Annotated[
        str, typer.Argument(metavar="QRELS", help="Query, 0, document and grade on each line.")
    ],
    run: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also measure this TREC run file."),
    ] = None,
    cutoff: Annotated[
        int, typer.Option("--cutoff", metavar="K", min=1, help="The K of recall@K.")
    ] = 100,
    id: IdColumn = None,
    text: options.TextColumn = None,
    as_json: options.Json = False,
) -> None:
    """Measure rankings: nDCG@10, the mean reciprocal rank, and recall@K.

    Only queries with a relevant document are counted.
    """
    asked = read_identified(queries, id=id, text=text)
    grades: dict[str, dict[str, float]] = {}
    for name, document, grade in _of_these(read_qrels(qrels), asked, qrels):
        grades.setdefault(name, {})[document] = grade
    counted = [name for name, judged in grades.items() if max(judged.values()) > 0]
    if not counted:
        raise CPTuningError(f"{qrels} has no relevant document (grade above 0) for these queries.")
    rankings: dict[str, dict[str, list[str]]] = {}
    if run is not None:
        rankings[run] = read_run(run)
    ranker = _ranker(model)
    texts = dict(zip(asked.ids, asked.examples.first, strict=True))
    found = ranker.predictor_.rank([texts[name] for name in counted], max(_DEPTH, cutoff))
    rankings[str(model)] = {
        name: [str(one.document) for one in ranking]
        for name, ranking in zip(counted, found, strict=True)
    }
    measured = {
        source: _measured(ranking, grades, counted, cutoff) for source, ranking in rankings.items()
    }
    if as_json:
        own = measured[str(model)]
        print_json(own if run is None else {**own, "run": measured[run]})
        return
    names = ("ndcg@10", "mrr", f"recall@{cutoff}")
    rows = [
        (source, *(f"{values[name]:.4f}" for name in names)) for source, values in measured.items()
    ]
    print_table(rows, header=(f"{len(counted)} queries", *names), numbers=3)


def _measured(
    rankings: dict[str, list[str]],
    grades: dict[str, dict[str, float]],
    queries: list[str],
    cutoff: int,
) -> dict[str, Any]:
    """The mean measures; a query without a ranking counts 0."""
    scored = [(rankings.get(name, []), grades[name]) for name in queries]
    return {
        "ndcg@10": rounded(float(np.mean([ndcg(found, judged) for found, judged in scored]))),
        "mrr": rounded(float(np.mean([reciprocal_rank(*one) for one in scored]))),
        f"recall@{cutoff}": rounded(
            float(np.mean([recall(found, judged, cutoff) for found, judged in scored]))
        ),
        "n": len(queries),
    }


def _of_these(judged: list[Triple], queries: IdentifiedTexts, path: str) -> list[Triple]:
    """The judgements of some queries: a qrels file often has those of others, too."""
    known = set(queries.ids)
    found = [one for one in judged if one[0] in known]
    if not found:
        raise CPTuningError(
            f"{path} judges none of the queries: their ids must be the same in both files "
            f"(a query is {queries.ids[0]!r}, a judged one {judged[0][0]!r})."
        )
    return found


def _ranker(model: Path) -> "CPTuningRanker":
    from cptuning.estimator import CPTuningRanker
    from cptuning.registry import load

    ranker = load(model)
    if not isinstance(ranker, CPTuningRanker):
        raise CPTuningError(
            f"The model {model} is not a ranker: make one with `cptuning rank fit`."
        )
    return ranker
