"""Which modules are mutated, and which tests belong to them."""

from collections.abc import Sequence
from pathlib import Path

from tests.mutants.sites import SOURCES

# After the tests of a module's own folder: those that use it most.
WIDER = {
    "losses": ["tests/methods/test_cp_tuning.py"],
    "prompting": ["tests/backbone/test_adapter.py", "tests/test_estimator.py"],
    "inference": ["tests/test_estimator.py", "tests/test_tagger.py", "tests/test_ranker.py"],
    "data": ["tests/cli/test_bad_inputs.py", "tests/test_weights.py", "tests/test_estimator.py"],
    "storage": ["tests/cli/test_bad_inputs.py", "tests/test_tagger.py", "tests/test_ranker.py"],
}


def modules(root: Path, only: Sequence[str] = ()) -> list[str]:
    """The modules of the groups, or those of them that begin so."""
    found = [
        str(path.relative_to(root / SOURCES))
        for group in WIDER
        for path in sorted((root / SOURCES / group).rglob("*.py"))
    ]
    return [name for name in found if not only or name.startswith(tuple(only))]


def stages(root: Path, module: str) -> list[list[str]]:
    """Tests to give a mutant of a module to, the quick and near ones first."""
    group, _, name = module.partition("/")
    own = f"tests/{group}/test_{name}"
    # The tests first: the collection of a module's own examples can hide a function of its name.
    near = [*([own] if (root / own).exists() else []), str(SOURCES / module)]
    wider = [test for test in WIDER[group] if (root / test).exists()]
    return [near, [f"tests/{group}"], wider]
