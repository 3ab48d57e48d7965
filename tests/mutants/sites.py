"""Where the sources can be mutated, by the operators of cosmic-ray, and how a mutant reads."""

import difflib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

SOURCES = Path("src/cptuning")


@dataclass(frozen=True)
class Mutant:
    """One change of one module: the nth place where an operator of cosmic-ray applies."""

    module: str
    operator: str
    occurrence: int
    line: int

    def code(self, root: Path) -> str:
        """The whole module after the change."""
        from cosmic_ray.mutating import mutate_code

        source = (root / SOURCES / self.module).read_text("utf-8")
        return mutate_code(source, _operators()[self.operator], self.occurrence)

    def change(self, root: Path) -> list[str]:
        """The lines that differ, as in a diff."""
        old = (root / SOURCES / self.module).read_text("utf-8").splitlines()
        lines = difflib.unified_diff(old, self.code(root).splitlines(), n=0, lineterm="")
        return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def sample(root: Path, modules: Sequence[str], size: int, seed: int) -> list[Mutant]:
    """So many places of the modules, each with one of the changes that are possible there.

    Places are drawn, and not changes: a comparison can be replaced by a dozen others, and would
    otherwise be drawn a dozen times as often as a number.
    """
    places: dict[Any, list[Mutant]] = {}
    for module in modules:
        for position, mutant in _mutants(root, module):
            places.setdefault((module, position), []).append(mutant)
    drawn: list[Mutant] = []
    for place in sorted(places, key=lambda place: _number(seed, *place)):
        if len(drawn) == size:
            break
        mutant = min(places[place], key=lambda one: _number(seed, one.operator, one.occurrence))
        if _is_python(mutant.code(root)):
            drawn.append(mutant)
    return drawn


def _number(*of: object) -> bytes:
    """A random number that is the same each time, whatever else there is to draw from."""
    return sha256(repr(of).encode()).digest()


def _is_python(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Such as of "is" with a number.
            compile(code, "mutant", "exec")
    except SyntaxError:  # cosmic-ray takes the stars of **options for a power.
        return False
    return True


def _mutants(root: Path, module: str) -> Iterator[tuple[Any, Mutant]]:
    from cosmic_ray.ast import ast_nodes, get_ast

    tree = get_ast((root / SOURCES / module).read_text("utf-8"))
    for name, operator in _operators().items():
        found = (
            (node, positions[0])
            for node in ast_nodes(tree)
            for positions in operator.mutation_positions(node)
        )
        for occurrence, (node, position) in enumerate(found):
            if not _is_annotation(node):
                yield position, Mutant(module, name, occurrence, position[0])


@cache
def _operators() -> dict[str, Any]:
    from cosmic_ray.plugins import get_operator, operator_names

    classes = {name: get_operator(name) for name in operator_names()}
    return {name: each() for name, each in sorted(classes.items()) if not each.arguments()}


def _is_annotation(node: Any) -> bool:
    """Whether a node is a part of a type; a change there says nothing of the tests.

    Types that are evaluated fail at once, as ``int + None`` does, and others are never read.
    """
    while node.parent is not None:
        parent = node.parent
        if parent.type == "annassign" and node is parent.children[1]:
            return True
        if parent.type == "tfpdef" and node is parent.children[2]:
            return True
        if parent.type == "funcdef" and getattr(parent, "annotation", None) is node:
            return True
        node = parent
    return False
