"""Check labelled data for what looks like a mistake: labels, repeats, leaks."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cptuning.cleaning.findings import CheckedRow, DataCheck, Finding, in_order, quoted
from cptuning.cleaning.label_errors import label_errors, label_set_errors
from cptuning.cleaning.repeats import leaks, same_texts, similar_texts
from cptuning.cleaning.similar_labels import similar_labels
from cptuning.data import (
    Examples,
    as_examples,
    is_multi_label,
    label_parts,
    label_space_of,
    label_text,
)
from cptuning.errors import CPTuningError

_MOST_NAMED = 5
_LEAST_FOR_SHARE = 200


def check(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    backbone: str = "embedded",
    names: Sequence[str] | None = None,
    test_names: Sequence[str] | None = None,
) -> DataCheck:
    """Check labelled texts, or pairs of texts, for what looks like a mistake.

    Finds labels that are probably wrong (by the leave-one-out answers of the preset "instant"),
    texts that are repeated, exactly or nearly, also under different labels, and labels that differ
    in case or spelling. With test data, it also finds test texts that are in the training data.
    ``names`` and ``test_names`` are what rows are called in the sentences, such as the lines of a
    file; without them it is ``X[7]``. ``backbone`` is the language model that reads the texts.

    >>> texts = ["hello there", "good morning", "Good morning!", "good bye", "see you", "bye bye"]
    >>> result = check(texts, ["in", "in", "out", "out", "out", "Out"])
    >>> print(result.text(most=1))
    The same text under different labels (1)
      "good morning" is labelled 'in' in X[1] and 'out' in X[2].
    <BLANKLINE>
    Labels that may mean the same class (1)
      'Out' (1 row) and 'out' (3 rows) differ only in case or separators.
    """
    examples = as_examples(X)
    label_space = label_space_of(y)
    train = _Part("train", examples, label_space.as_labels(y, len(examples)), names)
    parts = [train]
    if (X_test is None) != (y_test is None):
        raise CPTuningError("Give X_test and y_test together, or neither.")
    if X_test is not None:
        examples = as_examples(X_test, pair=examples.is_pair)
        test_labels = label_space_of(y_test).as_labels(y_test, len(examples))
        if is_multi_label(test_labels) != is_multi_label(train.labels):
            raise CPTuningError(
                "Either the training or the test texts have label sets, the others single labels: "
                "give both the same kind."
            )
        parts.append(_Part("test", examples, test_labels, test_names))
    findings: list[Finding] = []
    for part in parts:
        findings += [*_repeats(part), *_empty_texts(part)]
    findings += _similar_labels(parts)
    for test in parts[1:]:
        findings += [*_leaks(train, test), *_unknown_labels(train, test)]
    find = _label_set_errors if is_multi_label(train.labels) else _label_errors
    errors, share, note = find(train, backbone)
    n_test = sum(len(test.labels) for test in parts[1:])
    notes = (note,) if note else ()
    return DataCheck(in_order([*findings, *errors]), len(train.labels), n_test, share, notes)


@dataclass(frozen=True)
class _Part:
    """The training or the test data."""

    name: str
    examples: Examples
    labels: Sequence[Hashable]
    names: Sequence[str] | None

    def row(self, number: int) -> CheckedRow:
        argument = "X" if self.name == "train" else "X_test"
        where = f"{argument}[{number}]" if self.names is None else self.names[number]
        [text] = self.examples.take([number])
        return CheckedRow(self.name, number, where, text, self.labels[number])

    def first(self, label: str) -> Iterable[CheckedRow]:
        """The first row with a label of this name, if there is one."""
        numbers = (n for n, own in enumerate(self.labels) if label in map(str, label_parts(own)))
        return [self.row(number) for number in numbers][:1]


def _repeats(part: _Part) -> Iterable[Finding]:
    for repeat in [*same_texts(part.examples), *similar_texts(part.examples)]:
        rows = tuple(part.row(number) for number in repeat.rows)
        labels = {row.label for row in rows}
        if len(labels) == 1:
            kind = "duplicate" if repeat.is_exact else "near-duplicate"
            places = _and([row.where for row in rows])
            reason = f"{quoted(rows[0].text)} is in {places}."
        else:
            kind = "conflict"
            places = _and([f"{_named(row.label)} in {row.where}" for row in rows])
            reason = f"{quoted(rows[0].text)} is labelled {places}."
        if repeat.is_exact:
            yield Finding(kind, reason, rows)
        else:
            reason = f"Nearly the same text {reason.removeprefix(quoted(rows[0].text) + ' ')}"
            yield Finding(kind, reason, rows, evidence=rows[:_MOST_NAMED])


def _empty_texts(part: _Part) -> Iterable[Finding]:
    for number, text in enumerate(part.examples):
        if not "".join(text).strip():
            row = part.row(number)
            yield Finding("empty-text", f"{row.where} has no text.", (row,))


def _similar_labels(parts: Sequence[_Part]) -> Iterable[Finding]:
    counts = Counter(
        str(label) for part in parts for own in part.labels for label in label_parts(own)
    )
    for similar in similar_labels(counts):
        one, other = (
            f"{label!r} ({_many(counts[label], 'row')})" for label in (similar.other, similar.label)
        )
        differ = "only in case or separators" if similar.is_exact else "only in a few letters"
        rows = tuple(row for part in parts for row in part.first(similar.other))
        yield Finding("similar-labels", f"{one} and {other} differ {differ}.", rows)


def _leaks(train: _Part, test: _Part) -> Iterable[Finding]:
    for leak in leaks(train.examples, test.examples):
        row, known = test.row(leak.test_row), train.row(leak.train_row)
        same = "the same text" if leak.is_exact else "nearly the same text"
        reason = f"{row.where} has {same} as {known.where}"
        if row.label != known.label:
            reason += f", but is labelled {_named(row.label)}, not {_named(known.label)}"
        yield Finding("leak", f"{reason}: {quoted(row.text)}.", (row,), evidence=(known,))


def _unknown_labels(train: _Part, test: _Part) -> Iterable[Finding]:
    known = {label for own in train.labels for label in label_parts(own)}
    counts = Counter(label for own in test.labels for label in label_parts(own))
    for label, n in sorted(counts.items(), key=_name):
        if label not in known:
            [row] = test.first(str(label))
            where = row.where if n == 1 else f"{n} test rows, the first of which is {row.where}"
            yield Finding("unknown-label", f"{label!r} is the label of {where}.", (row,))


def _label_errors(part: _Part, backbone: str) -> tuple[list[Finding], float | None, str | None]:
    """The labels that are probably wrong, the estimated share, and what could not be checked."""
    if len(set(part.labels)) == 1:
        return [], None, "All examples have the same label: it can't be checked."
    from cptuning.estimator import CPTuningClassifier  # It imports scikit-learn.

    classifier = CPTuningClassifier(backbone, preset="instant", verbose=False)
    classifier.fit(part.examples, part.labels)
    held_out, rows = classifier.held_out_, classifier.held_out_rows_
    if held_out is None or rows is None:
        return [], None, "Every label has a single example: no label can be checked."
    predictor = classifier.predictor_
    errors, estimate = label_errors(held_out.scores, rows, predictor.support, predictor.label_space)
    # That a text has several labels is found already, and is certain.
    contradicted = {
        row
        for repeat in same_texts(part.examples)
        if len({part.labels[row] for row in repeat.rows}) > 1
        for row in repeat.rows
    }
    findings = []
    for error in errors:
        if error.row in contradicted:
            continue
        row = part.row(error.row)
        reason = (
            f"{row.where}: {quoted(row.text)} is labelled {error.label!r}, but looks like "
            f"{error.suggestion!r}: wrong with a probability of {100 * error.probability:.0f} %."
        )
        evidence = tuple(part.row(number) for number in error.nearest)
        findings.append(
            Finding("label-error", reason, (row,), evidence, error.suggestion, error.probability)
        )
    alone = len(part.labels) - len(rows)
    note = f"{_many(alone, 'label')} could not be checked: a single example has it."
    # With fewer labels, the estimate says more about the prior than about the data.
    share = estimate.share if len(rows) >= _LEAST_FOR_SHARE else None
    return findings, share, note if alone else None


def _label_set_errors(part: _Part, backbone: str) -> tuple[list[Finding], float | None, str | None]:
    """The same for label sets: labels that are probably missing, or that a text does not have."""
    from cptuning.estimator import CPTuningClassifier

    classifier = CPTuningClassifier(backbone, preset="instant", verbose=False)
    classifier.fit(part.examples, part.labels)
    held_out, rows = classifier.held_out_, classifier.held_out_rows_
    if held_out is None or rows is None:
        return [], None, "There is a single example: no label can be checked."
    found = label_set_errors(held_out, classifier.classes_.tolist())
    findings = []
    for error in found:
        row = part.row(int(rows[error.row]))
        sure = f"wrong with a probability of {100 * error.probability:.0f} %"
        if error.is_given:
            reason = f"is labelled {error.label!r}, but does not look like it"
        else:
            reason = f"is not labelled {error.label!r}, but looks like it"
        left = tuple(label for label in label_parts(row.label) if label != error.label)
        suggestion = left if error.is_given else (*left, error.label)
        findings.append(
            Finding(
                "label-error",
                f"{row.where}: {quoted(row.text)} {reason}: {sure}.",
                (row,),
                suggestion=suggestion,
                probability=error.probability,
            )
        )
    return findings, None, None


def _named(label: Hashable) -> str:
    """A label, or a label set, in a sentence.

    >>> _named("late"), _named(("late", "rude")), _named(())
    ("'late'", "'late, rude'", 'not at all')
    """
    if isinstance(label, tuple):
        return repr(label_text(label)) if label else "not at all"
    return repr(label)


def _and(parts: Sequence[str]) -> str:
    """A list as words.

    >>> _and(["a", "b", "c"])
    'a, b and c'
    """
    named = list(parts[:_MOST_NAMED])
    if len(parts) > _MOST_NAMED:
        named.append(f"{len(parts) - _MOST_NAMED} more")
    return f"{', '.join(named[:-1])} and {named[-1]}"


def _many(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _name(entry: tuple[Hashable, int]) -> str:
    return str(entry[0])
