"""The folders that a base install needs import nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "transformers",
    "sklearn",
    "pandas",
    "datasets",
    "pyarrow",
    "onnxruntime",
    "scipy",
)


@pytest.mark.parametrize("package", ["data", "prompting", "inference"])
def test_importing_the_folder_imports_nothing_heavy(package):
    code = f"import sys, cptuning.{package}; print(*(m for m in {HEAVY} if m in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
