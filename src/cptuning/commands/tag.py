"""cptuning tag: find spans, such as names or the slots of a request, in texts."""

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, print_table, rounded, say, warn
from cptuning.commands.tables import folder_name
from cptuning.data.formats import STANDARD_STREAM, file_name
from cptuning.data.sentence_files import conll_text, read_sentences, sentence_format
from cptuning.data.tag_schemes import iob2_of, types_of
from cptuning.errors import CPTuningError
from cptuning.files.atomic import write_whole
from cptuning.reporting.formatting import format_duration, format_interval, format_percent
from cptuning.reporting.html import check_writable

if TYPE_CHECKING:
    from cptuning.data.sentences import Sentence
    from cptuning.inference.tag_predictor import FoundSpan

tag = typer.Typer(
    help="Find spans, such as names or the slots of a request, from a few labelled sentences.",
    no_args_is_help=True,
)

Format = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The format of the file if not by its suffix: conll, jsonl."),
]


@tag.command()
def fit(
    train: Annotated[
        str,
        typer.Argument(metavar="TRAIN", help="Labelled sentences: .conll, or .jsonl with spans."),
    ],
    output: Annotated[Path, typer.Option(metavar="MODEL", help="The folder for the tagger.")],
    backbone: options.Backbone = "embedded",
    preset: Annotated[
        str,
        typer.Option(metavar="NAME", help="default, or instant: nothing is trained."),
    ] = "default",
    seed: options.Seed = 0,
    validation: Annotated[
        str,
        typer.Option(metavar="NAME", help="cross-fit, or none: a third of the time."),
    ] = "cross-fit",
    settings: options.Settings = None,
    device: options.Device = "auto",
    format: Format = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Learn to find spans from labelled sentences.

    A .conll file has a word and, in the last column, its tag on each line, and an empty line after
    each sentence; the tags may be IOB1, IOB2, BIOES or BILOU. A .jsonl file has objects like
    {"text": "to Rome", "spans": [{"start": 3, "end": 7, "label": "city"}]}, or with "tokens" and
    "tags".
    """
    from cptuning.estimator import CPTuningTagger
    from cptuning.storage import check_place

    began = time.monotonic()
    tagger = CPTuningTagger(
        backbone=backbone,
        preset=preset,
        random_state=seed,
        validation=validation,
        device=device,
        verbose=not quiet,
        **options.parse_settings_of(CPTuningTagger, settings),
    )
    check_place(output)
    tagged = read_sentences(train, need_tags=True, format=format).tagged
    assert tagged is not None
    if not quiet:
        types = types_of(tagged.spans)
        n_spans = sum(map(len, tagged.spans))
        say(f"{len(tagged)} sentences with {n_spans} spans of {len(types)} types.")
    tagger.fit_tagged(tagged).save(output)
    training, seconds = tagger.training_, time.monotonic() - began
    if as_json:
        print_json(
            {
                "model": str(output),
                "sentences": training["sentences"],
                "spans": training["spans"],
                "held_out_f1": rounded(training["held_out_f1"]),
                "kept": training["kept"],
                "seconds": round(seconds, 1),
            }
        )
    elif not quiet:
        f1 = training["held_out_f1"]
        held_out = "not measured" if f1 is None else format_percent(f1)
        typer.echo(f"Span F1 in training sentences that were left out: {held_out}.")
        typer.echo(f"The tagger is in {output} ({training['kept']}, {format_duration(seconds)}).")
        typer.echo(f"Next: cptuning tag evaluate {output} TEST.conll --report report.html")


@tag.command()
def predict(
    model: options.Model,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Texts: .txt, .jsonl or .conll; - is stdin.")
    ],
    output: Annotated[
        str, typer.Option(metavar="FILE", help="A .jsonl or .conll file; - is stdout, as JSONL.")
    ] = STANDARD_STREAM,
    format: Format = None,
    reasons: Annotated[
        int,
        typer.Option(metavar="K", min=0, help="Add the K nearest labelled spans to each span."),
    ] = 0,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Find the spans of texts.

    JSONL has an object per text, with its spans: text, label, start, end (in characters) and
    score. CoNLL has a word and its tag, in IOB2, per line. --json prints a summary instead of the
    spans.
    """
    from cptuning.storage.taggers import load_tagger

    if as_json and output == STANDARD_STREAM:
        raise CPTuningError(
            "--json prints its summary to stdout, where the spans go: name a file with --output."
        )
    kind = sentence_format(output)
    if kind == "txt" or output.endswith(".gz"):
        raise CPTuningError(f"{output}: name a .jsonl or a .conll file with --output.")
    if output != STANDARD_STREAM:
        check_writable(output)
    if kind == "conll" and reasons:
        raise CPTuningError("--reasons is for JSONL: name a .jsonl file with --output.")
    began = time.monotonic()
    sentences = read_sentences(file, format=format).sentences
    _, predictor = load_tagger(model)
    lines, counts = [], Counter[str]()
    explained = predictor.explain(sentences, reasons) if reasons else None
    found = (
        predictor.found(sentences)
        if explained is None
        else [[one for one, _ in spans] for spans in explained]
    )
    for number, (sentence, spans) in enumerate(zip(sentences, found, strict=True)):
        counts.update(one.span.label for one in spans)
        if kind == "conll":
            lines.append(conll_text(sentence, iob2_of([s.span for s in spans], len(sentence))))
            continue
        marked = [_span(sentence, one) for one in spans]
        if explained is not None:
            for span, (_, nearest) in zip(marked, explained[number], strict=True):
                span["nearest"] = [vars(reason) for reason in nearest]
        row = {"text": sentence.text, "spans": marked}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    if output == STANDARD_STREAM:
        sys.stdout.write("".join(lines))
    else:
        write_whole(Path(output), "".join(lines))
    if as_json:
        print_json({"texts": len(sentences), "output": output, "spans": dict(counts)})
    elif not quiet:
        where = "standard output" if output == STANDARD_STREAM else output
        spent = format_duration(time.monotonic() - began)
        say(f"{counts.total()} spans in {len(sentences)} texts written to {where} in {spent}.")


@tag.command()
def evaluate(
    model: options.Model,
    test: Annotated[
        str,
        typer.Argument(metavar="TEST", help="Labelled sentences: .conll, or .jsonl with spans."),
    ],
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a report as an HTML file.")
    ] = None,
    format: Format = None,
    as_json: options.Json = False,
) -> None:
    """Measure a tagger on labelled sentences that it has not seen.

    A span is found if its type, its beginning and its end are right (seqeval's strict rule). The
    interval is a bootstrap over the sentences.
    """
    from cptuning.reporting.span_metrics import SpanScores
    from cptuning.reporting.tagging_report import tagging_report_html
    from cptuning.storage.taggers import load_tagger

    if report is not None:
        check_writable(report)
    tagged = read_sentences(test, need_tags=True, format=format).tagged
    assert tagged is not None
    _, predictor = load_tagger(model)
    seen = {sentence.words for sentence in predictor.examples.sentences}
    common = sum(sentence.words in seen for sentence in tagged.sentences)
    if common:
        warn(
            f"{common} of the {len(tagged)} sentences are labelled in the tagger too: F1 will be "
            "too high."
        )
    for label in types_of(tagged.spans):
        if label not in predictor.types:
            warn(f"The tagger does not know the type {label!r}, so it finds none of its spans.")
    found = [[one.span for one in spans] for spans in predictor.found(tagged.sentences)]
    scores = SpanScores(tagged.spans, found)
    if report is not None:
        name = file_name(test) if test == STANDARD_STREAM else Path(test).name
        page = tagging_report_html(
            tagged.sentences, scores, predictor.types, model=folder_name(model), test=name
        )
        write_whole(report, page)
        say(f"The report is in {report}.")
    overall, (low, high) = scores.overall, scores.interval
    by_type = scores.by_type()
    if as_json:
        print_json(
            {
                "f1": rounded(scores.f1),
                "interval": [rounded(low), rounded(high)],
                "precision": rounded(overall.precision),
                "recall": rounded(overall.recall),
                "spans": overall.support,
                "found": overall.answered,
                "n": len(tagged),
                "types": {
                    str(one.label): {
                        "f1": rounded(one.f1),
                        "precision": rounded(one.precision),
                        "recall": rounded(one.recall),
                        "spans": one.support,
                    }
                    for one in by_type
                },
            }
        )
        return
    print_table(
        [
            ("span F1", format_percent(scores.f1), f"95 % interval {format_interval(low, high)}"),
            ("precision", format_percent(overall.precision), f"of {overall.answered} found"),
            ("recall", format_percent(overall.recall), f"of {overall.support} in the data"),
            ("sentences", str(len(tagged)), ""),
        ]
    )
    typer.echo()
    print_table(
        [
            (
                str(one.label),
                format_percent(one.f1),
                format_percent(one.precision),
                format_percent(one.recall),
                str(one.support),
            )
            for one in by_type
        ],
        header=("type", "F1", "precision", "recall", "spans"),
        numbers=4,
    )


def _span(sentence: "Sentence", one: "FoundSpan") -> dict[str, Any]:
    return sentence.marked(one.span) | {"score": rounded(one.score)}
