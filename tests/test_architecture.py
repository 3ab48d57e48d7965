"""The order of the folders: each imports only from those above it, and heavy packages stay lazy."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cptuning"

# The way of the data, as in CONTRIBUTING.md.
ORDER = [
    "errors",
    "input_limits",
    "extras",
    "files",
    "data",
    "prompting",
    "backbone",
    "losses",
    "inference",
    "settings",
    "training",
    "methods",
    "storage",
    "export",
    "estimator",
    "registry",
    "reporting",
    "cleaning",
    "cluster",
    "experiments",
    "serving",
    "app",
    "commands",
    "cli",
    "__main__",
]


def part_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            pieces = name.split(".")
            if pieces[0] == "cptuning" and len(pieces) > 1:
                yield pieces[1]


MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def test_every_part_has_its_place():
    assert {part_of(path) for path in MODULES} == set(ORDER)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_folder_imports_only_from_those_above_it(path):
    part = part_of(path)
    for imported in imports_of(path):
        if imported in ORDER:
            assert ORDER.index(imported) <= ORDER.index(part), f"{part} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_opens_with_what_it_is_for(path):
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":"))


def test_no_two_classes_share_a_name():
    """Leading underscores do not count: a reader does not see them in speech."""
    places = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


# Names of files that occur in several folders because they mean the same in each.
SHARED_FILE_NAMES = {
    "__init__.py": "Python's own name",
    "__main__.py": "Python's own name",
    "cp_tuning.py": "the method, and its estimator",
}


def test_files_share_a_name_only_if_they_mean_the_same():
    """A command's file may also have the name of the module that it is the front of."""
    folders = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        folders[path.name].add(path.parent.relative_to(SOURCE).as_posix())
    shared = {name for name, found in folders.items() if len(found - {"commands"}) > 1}
    assert shared == set(SHARED_FILE_NAMES)


HEAVY = (
    "torch",
    "transformers",
    "sklearn",
    "pandas",
    "datasets",
    "pyarrow",
    "matplotlib",
    "fastapi",
    "gradio",
    "faiss",
    "onnxruntime",
    "ray",
    "scipy",
)


@pytest.mark.parametrize(
    "statement",
    [
        "import cptuning",
        "import cptuning.data",
        "import cptuning.prompting",
        "import cptuning.inference",
        "import cptuning.cli",
    ],
)
def test_heavy_packages_are_not_imported_before_they_are_needed(statement):
    code = f"import sys; {statement}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_walk_of_a_fit_names_at_most_a_dozen_modules_and_all_of_them_exist():
    guide = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    walk = guide.split("## What happens in a fit")[1].split("\n## ")[0]
    picture = walk.split("```mermaid")[1].split("```")[0]
    drawn = set(re.findall(r"[a-z_/]+\.py", picture))
    told = set(re.findall(r"[a-z_/]+\.py", walk))
    assert drawn == told
    assert len(drawn) <= 12
    assert all((SOURCE / module).is_file() for module in drawn)
