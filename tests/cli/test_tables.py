"""What can be said of labelled files before they are used."""

import pytest

from cptuning.commands.tables import described, oddities
from cptuning.data import Examples, Table, check_kind
from cptuning.errors import CPTuningError


def table(rows):
    texts, labels = zip(*rows, strict=True)
    where = [f"t.csv, line {n + 2}" for n in range(len(rows))]
    return Table([{}] * len(rows), Examples(texts), list(labels), where)


def test_many_classes_are_not_all_listed():
    line = described(table([(f"text {i}", f"class {i:02}") for i in range(25)]), "t.csv")
    assert "in 25 classes" in line
    assert "class 19 1, and 5 more" in line
    assert "class 20" not in line


def test_clean_data_has_no_oddities():
    assert oddities(table([("a", "x"), ("b", "y")]), "t.csv") == []


def test_repeats_are_counted_and_contradictions_located():
    rows = [("a", "x"), ("a", "x"), ("a", "x"), ("b", "x"), ("B", "y"), ("c", "x"), ("c", "z")]
    repeated, contradiction = oddities(table(rows), "t.csv")
    assert repeated == "t.csv: 2 rows repeat a text and its label."
    assert contradiction == (
        "'b' has the label 'x' in t.csv, line 5 and 'y' in t.csv, line 6, and 1 more like it."
    )


def test_the_kind_of_examples_is_checked_both_ways():
    pair, single = Examples(("a",), ("b",)), Examples(("a",))
    check_kind(pair, pairs=True, path="t.csv")
    check_kind(single, pairs=False, path="t.csv")
    with pytest.raises(CPTuningError, match=r"t\.csv has single texts .* --text-b"):
        check_kind(single, pairs=True, path="t.csv")
    with pytest.raises(CPTuningError, match=r"standard input has pairs .* --text\."):
        check_kind(pair, pairs=False, path="-")
