"""SECURITY.md and docs/promises.md: each threat and each promise names tests, and they exist."""

import ast
import re
import runpy

import pytest

from tests.standstill import ROOT

MODEL = (ROOT / "SECURITY.md").read_text("utf-8")
THREATS = re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$", MODEL, re.MULTILINE)
PAGE = runpy.run_path(str(ROOT / "docs" / "make_promises_page.py"))
PROMISED = {
    test for rows in PAGE["PROMISES"].values() for _, tests, _ in rows for test in tests.split()
}
NAMED = sorted(
    PROMISED | set(re.findall(r"`(tests/[^`]+)`", " ".join(tests for _, tests in THREATS)))
)


def test_every_threat_names_a_test():
    assert len(THREATS) > 25
    for threat, tests in THREATS:
        if threat not in ("Threat", "---"):
            assert "::" in tests, threat


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_is_named_exists(name):
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert function.startswith(("test_", "Test")) or name in PROMISED
    assert function in {*found, ""}


def test_the_page_of_promises_is_up_to_date():
    written = (ROOT / "docs" / "promises.md").read_text("utf-8")
    assert written == PAGE["page"](), "run python docs/make_promises_page.py"
