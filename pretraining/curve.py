"""The loss curve of the model card, from the logs of the runs that made it.

    python -m pretraining.curve OUTPUT.png LOG.jsonl [LOG.jsonl ...]

Several logs are runs that follow one another, each started from the weights of the one before.
"""

import argparse
import json
from pathlib import Path

import matplotlib.pyplot as plt


def read_logs(paths: list[Path]) -> dict[str, list[float]]:
    """Tokens seen and both losses, over all runs."""
    curve: dict[str, list[float]] = {"tokens": [], "loss": [], "relation": []}
    before = 0.0
    for path in paths:
        for line in map(json.loads, path.read_text("utf-8").splitlines()):
            if line["relation"] is not None:
                curve["tokens"].append((before + line["tokens"]) / 1e9)
                curve["loss"].append(line["loss"])
                curve["relation"].append(line["relation"])
        before = 1e9 * curve["tokens"][-1]
    return curve


def draw(curve: dict[str, list[float]], output: Path) -> None:
    """Draw both losses against the tokens seen."""
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    axes.plot(curve["tokens"], curve["loss"], label="masked tokens")
    axes.plot(curve["tokens"], curve["relation"], label="word that tells a pair's relation")
    axes.set_ylim(0, 7)
    axes.set_xlabel("tokens seen (billions)")
    axes.set_ylabel("training loss (nats)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(output, dpi=110)
    plt.close(figure)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("logs", type=Path, nargs="+")
    chosen = parser.parse_args()
    draw(read_logs(chosen.logs), chosen.output)


if __name__ == "__main__":
    main()
