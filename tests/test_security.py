"""SECURITY.md: each threat names tests, and they exist."""

import ast
import re

import pytest

from tests.standstill import ROOT

MODEL = (ROOT / "SECURITY.md").read_text("utf-8")
THREATS = re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$", MODEL, re.MULTILINE)
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", " ".join(tests for _, tests in THREATS))))


def test_every_threat_names_a_test():
    assert len(THREATS) > 25
    for threat, tests in THREATS:
        if threat not in ("Threat", "---"):
            assert "::" in tests, threat


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_is_named_exists(name):
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert function.startswith("test_")
    assert function in found
