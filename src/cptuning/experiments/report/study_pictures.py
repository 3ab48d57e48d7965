"""The figures of a study: for its web page, and as files for a paper."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cptuning.experiments.report.parts import Picture
from cptuning.inference.support import IntArray
from cptuning.reporting.figures import (
    PAGE,
    PAPER,
    WIDTH,
    Theme,
    class_colour,
    drawing,
    embedding_figure,
    figure_files,
    inline_svg,
)

Curves = dict[str, dict[float, tuple[float, float]]]
"""By name, the mean and the standard deviation at each value."""

Averages = dict[str, tuple[list[float], float | None]]
"""By row, the scores that are averaged, and a published average to compare with."""

Splits = dict[str, dict[str, float]]
"""By row, the score in % of every split, by what the split is called."""

_Draw = Callable[[Any, Theme], Any]


def curves_picture(
    name: str, caption: str, curves: Curves, symbol: str, *, doubling: bool = False
) -> Picture:
    """Accuracy in % against the values of a parameter, one curve per data set.

    >>> curves_picture("m", "", {"MR": {0.1: (70.0, 1.0), 0.2: (71.0, 2.0)}}, "m").svg[:4]
    '<svg'
    """

    def draw(new_figure: Any, theme: Theme) -> Any:
        figure, axes = new_figure(WIDTH * 0.68)
        for number, (label, curve) in enumerate(curves.items()):
            at = list(curve)
            means, spreads = (np.array(part) for part in zip(*curve.values(), strict=True))
            colour = class_colour(number)
            axes.fill_between(at, means - spreads, means + spreads, color=colour, alpha=0.1, lw=0)
            axes.plot(at, means, color=colour, marker="o", linewidth=1.8, markersize=4, label=label)
        values = sorted({value for curve in curves.values() for value in curve})
        if doubling:
            axes.set_xscale("log", base=2)
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()
        axes.set_xlabel(symbol)
        axes.set_ylabel("accuracy in %")
        axes.grid(axis="y", color=theme.line, linewidth=0.8)
        figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=9)
        return figure

    return _picture(name, caption, f"Accuracy by {symbol}", draw)


def averages_picture(name: str, caption: str, rows: Averages) -> Picture:
    """Averages in %, with a small dot for each score and a diamond for the published average.

    >>> averages_picture("averages", "", {"PET": ([70.0, 80.0], 78.0)}).svg[:4]
    '<svg'
    """

    def draw(new_figure: Any, theme: Theme) -> Any:
        figure, axes = new_figure(0.7 + 0.33 * len(rows))
        lowest = min(score for scores, _ in rows.values() for score in scores)
        for place, (scores, other) in enumerate(rows.values()):
            heights = [place] * len(scores)
            axes.plot(scores, heights, "o", color=theme.accent, markersize=3.5, alpha=0.5, mew=0)
            axes.plot(np.mean(scores), place, "o", color=theme.accent, markersize=9, mew=0)
            if other is not None:
                axes.plot(other, place, "D", color=theme.warm, markersize=6, mew=0)
                lowest = min(lowest, other)
        axes.set_xlim(max(0, 10 * np.floor(lowest / 10 - 0.3)), 100)
        _name_rows(axes, list(rows), theme)
        return figure

    return _picture(name, caption, "Average accuracy of every method", draw)


def splits_picture(name: str, caption: str, rows: Splits) -> Picture:
    """One dot per split, which says on hover what it is, and a bar at the mean of each row.

    >>> picture = splits_picture("splits", "", {"PET": {"split 13": 70.0, "split 21": 72.5}})
    >>> "<title>PET, split 21: 72.5 %</title>" in picture.svg
    True
    """
    hints = {
        f"dot-{place}-{number}": f"{row}, {split}: {score:.1f} %"
        for place, (row, scores) in enumerate(rows.items())
        for number, (split, score) in enumerate(scores.items())
    }

    def draw(new_figure: Any, theme: Theme) -> Any:
        figure, axes = new_figure(0.7 + 0.3 * len(rows))
        for place, scores in enumerate(rows.values()):
            mean = float(np.mean(list(scores.values())))
            axes.plot([mean, mean], [place - 0.3, place + 0.3], color=theme.warm, linewidth=2)
            for number, score in enumerate(scores.values()):
                gid = f"dot-{place}-{number}"
                axes.plot(
                    score, place, "o", color=theme.accent, markersize=6, alpha=0.6, mew=0, gid=gid
                )
        _name_rows(axes, list(rows), theme)
        return figure

    return _picture(name, caption, "Accuracy of every split", draw, hints, formats=("svg", "pdf"))


def embedding_picture(
    name: str,
    caption: str,
    points: NDArray[np.float64],
    classes: IntArray,
    is_train: NDArray[np.bool_],
    legend: dict[str, str],
) -> Picture:
    """Test texts as dots and training examples as diamonds, coloured by class."""

    def draw(new_figure: Any, theme: Theme) -> Any:
        return embedding_figure(new_figure, theme, points, classes, is_train)

    return _picture(name, caption, "Embeddings of training and test texts", draw, legend=legend)


def _name_rows(axes: Any, names: list[str], theme: Theme) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("accuracy in %")
    axes.grid(color=theme.line, linewidth=0.8)


def _picture(
    name: str,
    caption: str,
    description: str,
    draw: _Draw,
    hints: Mapping[str, str] | None = None,
    legend: dict[str, str] | None = None,
    formats: Sequence[str] = ("png", "svg", "pdf"),
) -> Picture:
    """Drawn twice: in the colours of the page, and in those of a paper."""
    with drawing(PAGE) as new_figure:
        svg = inline_svg(draw(new_figure, PAGE), name, description, hints)
    with drawing(PAPER) as new_figure:
        files = figure_files(draw(new_figure, PAPER), formats)
    return Picture(name, caption, svg, files, legend or {})
