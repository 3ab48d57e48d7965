"""The whole recipe through its commands: raw text in, the package's folder out."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM

from pretraining.curve import read_logs

ROOT = Path(__file__).parents[2]
WORDS = "these are the same part similar connected related different yes no then also ? , ."


def run(module, *arguments):
    command = [sys.executable, "-m", f"pretraining.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def raw_text(folder):
    rng = np.random.default_rng(0)
    folder.mkdir()
    words = [
        "river",
        "mountain",
        "valley",
        "forest",
        "city",
        "village",
        "house",
        "garden",
        "road",
        "bridge",
    ]
    lines = []
    for number in range(600):
        said = " ".join(rng.choice(words, size=14))
        lines.append(f"Story {number} tells of {said}. It goes on: {said}. {WORDS} And {number}.")
    (folder / "stories.txt").write_text("\n".join(lines), "utf-8")


def test_the_recipe_from_end_to_end(tmp_path):
    raw_text(tmp_path / "raw")
    tests = tmp_path / "data/SET"
    tests.mkdir(parents=True)
    with gzip.open(tests / "test.jsonl.gz", "wt") as file:
        file.write(json.dumps({"text_a": "it goes on and on and on", "label": "x"}) + "\n")
    corpus, vocabulary, tokens = tmp_path / "corpus", tmp_path / "vocabulary", tmp_path / "tokens"
    run("corpus", tmp_path / "raw", corpus, "--tests", tmp_path / "data", "--workers", 1)
    run("vocabulary", corpus, vocabulary, "--size", 400)
    said = run("tokens", corpus, vocabulary, tokens, "--workers", 1)
    assert "sentences" in said
    tiny = [
        "--width",
        "32",
        "--layers",
        "2",
        "--heads",
        "2",
        "--tokens-a-step",
        "512",
        "--cycle",
        "text:64",
        "relations",
    ]
    more = ["--device", "cpu", "--steps", 60, *tiny]
    run("train", tokens, vocabulary, tmp_path / "run", *more, "--stop-after", 0)
    run("train", tokens, vocabulary, tmp_path / "run", *more)
    run("export", tmp_path / "run", vocabulary, tmp_path / "bert")
    (tmp_path / "package").mkdir()
    run("export", "--pack", tmp_path / "bert", tmp_path / "package")
    run("curve", tmp_path / "curve.png", tmp_path / "run/log.jsonl")
    assert (tmp_path / "curve.png").stat().st_size > 5000
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "bert")
    assert model.config.num_hidden_layers == 2
    assert len(load_file(tmp_path / "package/model.packed.safetensors")) > 20
    assert (tmp_path / "package/tokenizer.json").is_file()


def test_logs_of_runs_that_follow_each_other_are_joined(tmp_path):
    for name, losses in (("a", [5.0, 4.0]), ("b", [3.0])):
        lines = [
            json.dumps({"tokens": 1_000_000 * (i + 1), "loss": loss, "relation": 1.0})
            for i, loss in enumerate(losses)
        ]
        (tmp_path / name).write_text("\n".join(lines))
    curve = read_logs([tmp_path / "a", tmp_path / "b"])
    assert curve["tokens"] == [0.001, 0.002, 0.003]
    assert curve["loss"] == [5.0, 4.0, 3.0]
