"""The base install fits instantly and answers, by Python and by commands; and quickly."""

import subprocess
import sys

from tests.cli import without_torch
from tests.export.base_install import ABSENT

from cptuning import CPTuningClassifier

HEAVY = {*ABSENT, "sklearn", "scipy", "pyarrow"}
PREDICT = f"""
import sys
from cptuning.cli import app
app(sys.argv[1:], standalone_mode=False)
print(sorted({HEAVY!r} & set(sys.modules)))
"""


def output_of(*command):
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_base_install_fits_predicts_explains_adds_saves_and_loads(tmp_path):
    output_of("-m", without_torch.__name__, tmp_path)


def test_predicting_with_a_saved_model_imports_nothing_heavy(tmp_path):
    texts, labels = ["good film", "i loved it", "bad film", "i hated it"], ["+", "+", "-", "-"]
    CPTuningClassifier(preset="instant").fit(texts, labels).save(tmp_path / "model")
    (tmp_path / "new.csv").write_text("text\nawful film\n", "utf-8")
    printed = output_of(
        "-c", PREDICT, "predict", tmp_path / "model", tmp_path / "new.csv", "--quiet"
    )
    assert printed.splitlines()[1].startswith("awful film,-")
    assert printed.splitlines()[-1] == "[]"
