"""Figures as inline SVG, whose colours follow the light or dark page, and as PNG."""

import re
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from html import escape
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cptuning.extras import needed_for
from cptuning.inference.support import IntArray
from cptuning.reporting.metrics import ConfusionMatrix, ReliabilityBin

if TYPE_CHECKING:
    from cptuning.reporting.learning_curve import CurvePoint

# Distinguishable on light and dark backgrounds; with more classes than colours, they repeat.
CLASS_COLOURS = (
    "#4e79a7",
    "#f28e2b",
    "#e15759",
    "#59a14f",
    "#b07aa1",
    "#76b7b2",
    "#d4a72c",
    "#ff7c93",
    "#9c755f",
    "#8a8f98",
)

# In inches: as wide as a phone's screen, so that text is not scaled down there.
WIDTH = 4.7

_DRAWING = Lock()

_MOST_NUMBERED_CLASSES = 12
_MOST_NAMED_CLASSES = 40


@dataclass(frozen=True)
class Theme:
    """The colours of everything except the classes."""

    ink: str
    muted: str
    line: str
    accent: str
    warm: str


# Placeholder colours, which are replaced by CSS variables of the page.
PAGE = Theme(ink="#010203", muted="#040506", line="#070809", accent="#0a0b0c", warm="#0d0e0f")
PAPER = Theme(ink="#1c2024", muted="#60646c", line="#d9d9e0", accent="#2f6fdb", warm="#d9622b")


def class_colour(number: int) -> str:
    """The colour of the class with this number.

    >>> class_colour(0) == class_colour(len(CLASS_COLOURS))
    True
    """
    return CLASS_COLOURS[number % len(CLASS_COLOURS)]


def confusion_svg(confusion: ConfusionMatrix) -> str:
    """A confusion matrix: true classes as rows, answers as columns; darker is a larger share.

    >>> confusion_svg(ConfusionMatrix.of(["a", "b"], ["a", "a"]))[:4]
    '<svg'
    """
    classes, counts = confusion.classes, confusion.counts
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    with drawing(PAGE) as new_figure:
        figure, axes = new_figure(WIDTH * (0.95 if len(classes) > 3 else 0.8))
        cells = np.zeros((*shares.shape, 4))
        cells[..., :3] = 47 / 255, 111 / 255, 219 / 255
        cells[..., 3] = 0.75 * shares
        axes.imshow(cells, interpolation="nearest")
        if len(classes) <= _MOST_NAMED_CLASSES:
            names = [_short(label) for label in classes]
            axes.set_xticks(
                range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor"
            )
            axes.set_yticks(range(len(names)), names)
        else:
            axes.set_xticks([])
            axes.set_yticks([])
        if len(classes) <= _MOST_NUMBERED_CLASSES:
            for row, column in zip(*np.nonzero(counts), strict=True):
                axes.text(column, row, str(counts[row, column]), ha="center", va="center")
        axes.set_xlabel("answer")
        axes.set_ylabel("true class")
        return inline_svg(figure, "confusion", "Confusion matrix")


def reliability_svg(bins: Sequence[ReliabilityBin]) -> str:
    """A reliability diagram: accuracy by confidence; on the diagonal, they are equal.

    >>> reliability_svg([ReliabilityBin(n=5, confidence=0.8, accuracy=0.6)])[:4]
    '<svg'
    """
    with drawing(PAGE) as new_figure:
        figure, axes = new_figure(WIDTH * 0.8)
        axes.plot([0, 1], [0, 1], color=PAGE.muted, linestyle=(0, (4, 3)), linewidth=1)
        confidence = [b.confidence for b in bins]
        accuracy = [b.accuracy for b in bins]
        axes.vlines(confidence, confidence, accuracy, color=PAGE.warm, alpha=0.6, linewidth=2)
        largest = max(b.n for b in bins)
        sizes = [18 + 160 * b.n / largest for b in bins]
        axes.scatter(confidence, accuracy, s=sizes, color=PAGE.accent, alpha=0.85, zorder=3)
        axes.set_xlim(0, 1)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel("confidence")
        axes.set_ylabel("accuracy")
        axes.grid(color=PAGE.line, linewidth=0.8)
        return inline_svg(figure, "reliability", "Reliability diagram")


def embedding_svg(
    points: NDArray[np.float64],
    classes: IntArray,
    is_train: NDArray[np.bool_],
    name: str = "embeddings",
) -> str:
    """Test texts as dots and training examples as outlined diamonds, coloured by true class.

    ``name`` is unique among the figures of a page. A text whose class the model does not know has
    the class number -1 and is grey.

    >>> embedding_svg(np.eye(2), np.array([0, 1]), np.array([True, False]))[:4]
    '<svg'
    """
    with drawing(PAGE) as new_figure:
        figure = embedding_figure(new_figure, PAGE, points, classes, is_train)
        return inline_svg(figure, name, "Embeddings of training and test texts")


def embedding_figure(
    new_figure: Any,
    theme: Theme,
    points: NDArray[np.float64],
    classes: IntArray,
    is_train: NDArray[np.bool_],
) -> Any:
    """The figure of :func:`embedding_svg`, in a theme."""
    figure, axes = new_figure(WIDTH * 0.85)
    colours = np.array([class_colour(c) if c >= 0 else theme.muted for c in classes])
    # The more points there are, the smaller they are.
    size = float(np.clip(9000 / max(1, len(points)), 8, 34))
    test = ~is_train
    axes.scatter(*points[test].T, s=size, c=colours[test], alpha=0.7, linewidths=0)
    axes.scatter(
        *points[is_train].T,
        s=size * 1.7,
        c=colours[is_train],
        marker="D",
        edgecolors=theme.ink,
        linewidths=0.8,
        zorder=3,
    )
    axes.set_xticks([])
    axes.set_yticks([])
    return figure


Costs = dict[tuple[str, str], tuple[float, float]]
"""By method and encoder, the seconds to fit and the accuracy in %."""


def accuracy_by_seconds_png(costs: Costs, note: str = "") -> bytes:
    """Accuracy against seconds, as a PNG file: a colour per method, each point with its encoder.

    ``note`` says below the picture what was measured.

    >>> accuracy_by_seconds_png({("SetFit", "small"): (60.0, 75.0)})[1:4]
    b'PNG'
    """
    methods = list(dict.fromkeys(method for method, _ in costs))
    with drawing(PAPER) as new_figure:
        figure, axes = new_figure(WIDTH * 0.85)
        figure.set_size_inches(WIDTH * 1.6, WIDTH * 0.85)
        for method, colour in zip(methods, _method_colours(methods), strict=True):
            points = [point for (name, _), point in costs.items() if name == method]
            axes.plot(
                *zip(*points, strict=True), "o", color=colour, markersize=9, mew=0, label=method
            )
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.margins(0.1, 0.14)
        axes.set_xlabel("\n".join(filter(None, ["seconds to fit, one CPU core", note])))
        axes.set_ylabel("accuracy in %")
        axes.grid(color=PAPER.line, linewidth=0.8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        figure.legend(loc="outside upper center", ncols=len(methods), frameon=False, fontsize=9)
        _name_encoders(figure, axes, costs)
        return _png(figure)


def _method_colours(methods: Sequence[str]) -> list[str]:
    """Ours in strong colours, and shades of grey for the others."""
    ours = iter((PAPER.accent, PAPER.warm))
    others = iter(("#c4c8cf", "#8b919b", PAPER.ink))
    return [next(ours if "CP-Tuning" in method else others, PAPER.ink) for method in methods]


def _name_encoders(figure: Any, axes: Any, costs: Costs) -> None:
    """Write the encoder beside each point, on the side where it overlaps other things the least."""
    figure.draw_without_rendering()
    marks = axes.transData.transform(list(costs.values()))
    taken = [(x - 12, y - 12, x + 12, y + 12) for x, y in marks]
    frame = axes.get_window_extent().extents
    right, left = ((10, 0), "left", "center"), ((-10, 0), "right", "center")
    above, below = ((0, 8), "center", "bottom"), ((0, -8), "center", "top")
    sides = (right, left, above, below)
    for (_, encoder), point in costs.items():
        style = {"textcoords": "offset points", "fontsize": 8.5}
        texts = [axes.annotate(encoder, point, xy, ha=ha, va=va, **style) for xy, ha, va in sides]
        boxes = [text.get_window_extent().extents for text in texts]
        overlaps = [
            sum(_common_area(box, other) for other in taken)
            + (box[2] - box[0]) * (box[3] - box[1])
            - _common_area(box, frame)
            for box in boxes
        ]
        best = int(np.argmin(overlaps))
        taken.append(tuple(boxes[best]))
        for text in texts[:best] + texts[best + 1 :]:
            text.remove()


def _common_area(one: Sequence[float], other: Sequence[float]) -> float:
    """Of two boxes (left, bottom, right, top).

    >>> _common_area((0, 0, 2, 2), (1, 1, 3, 3)), _common_area((0, 0, 1, 1), (2, 0, 3, 1))
    (1, 0)
    """
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0, width) * max(0, height)


def curve_svg(
    points: "Sequence[CurvePoint]", majority: float, metric: str = "accuracy", per: str = "class"
) -> str:
    """Accuracy, or another metric, by examples per class or label, as SVG."""
    with drawing(PAGE) as new_figure:
        figure = _curve(new_figure, PAGE, points, majority, metric, per)
        return inline_svg(figure, "curve", f"{metric.capitalize()} by examples per {per}")


def curve_png(
    points: "Sequence[CurvePoint]", majority: float, metric: str = "accuracy", per: str = "class"
) -> bytes:
    """The same figure as a PNG file."""
    with drawing(PAPER) as new_figure:
        return _png(_curve(new_figure, PAPER, points, majority, metric, per))


def _png(figure: Any) -> bytes:
    return figure_files(figure, ("png",))["png"]


def figure_files(figure: Any, formats: Sequence[str]) -> dict[str, bytes]:
    """The figure as files, by format; the same figure always makes the same bytes."""
    undated: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    files = {}
    for kind in formats:
        buffer = BytesIO()
        figure.savefig(buffer, format=kind, dpi=200, facecolor="white", metadata=undated.get(kind))
        files[kind] = buffer.getvalue()
    return files


def _curve(
    new_figure: Any,
    theme: Theme,
    points: "Sequence[CurvePoint]",
    majority: float,
    metric: str,
    per: str,
) -> Any:
    figure, axes = new_figure(WIDTH * 0.7)
    sizes = [point.size for point in points]
    known = [(point.size, *point.interval) for point in points if point.interval is not None]
    if known:
        at, low, high = zip(*known, strict=True)
        axes.fill_between(at, low, high, color=theme.accent, alpha=0.15, linewidth=0)
    for point in points:
        at_size = [point.size] * len(point.values)
        axes.scatter(at_size, point.values, s=10, color=theme.muted, alpha=0.7, zorder=2)
    means = [point.mean for point in points]
    axes.plot(sizes, means, color=theme.accent, marker="o", linewidth=2, markersize=5, zorder=3)
    axes.axhline(majority, color=theme.warm, linestyle=(0, (4, 3)), linewidth=1)
    axes.annotate(
        "majority class" if per == "class" else "same labels for all",
        (1, majority),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        color=theme.warm,
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(0, 1.02)
    axes.set_yticks(np.linspace(0, 1, 6), [f"{share:.0%}" for share in np.linspace(0, 1, 6)])
    axes.set_xlabel(f"examples per {per}")
    axes.set_ylabel(metric)
    axes.grid(axis="y", color=theme.line, linewidth=0.8)
    return figure


@contextmanager
def drawing(theme: Theme) -> Iterator[Any]:
    """Yields a function that makes a figure with one pair of axes in the style of a theme.

    matplotlib's settings are global to the process, so only one thread draws at a time, and
    afterwards they are as they were.
    """
    with needed_for("A figure"):
        import matplotlib
        from matplotlib.figure import Figure

    def new_figure(height: float) -> Any:
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        return figure, figure.subplots()

    style = {
        "svg.fonttype": "none",  # Text stays text, in the font of the page.
        "svg.hashsalt": "cptuning",
        "pdf.fonttype": 42,  # Real letters: what most publishers ask for.
        "text.parse_math": False,  # A class may be called "$5 off$".
        "font.size": 10,
        "text.color": theme.ink,
        "axes.labelcolor": theme.muted,
        "axes.edgecolor": theme.line,
        "axes.facecolor": "none",
        "xtick.color": theme.line,
        "ytick.color": theme.line,
        "xtick.labelcolor": theme.ink,
        "ytick.labelcolor": theme.ink,
        "axes.axisbelow": True,
    }
    with _DRAWING, matplotlib.rc_context(style), warnings.catch_warnings():
        # matplotlib's font lacks the glyphs of some scripts, but the browser has them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield new_figure


def inline_svg(
    figure: Any, name: str, description: str, hints: Mapping[str, str] | None = None
) -> str:
    """The figure as an SVG element whose ids are unique on the page.

    ``hints`` are shown on hover: by an artist's ``gid``, what it is.
    """
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue().decode("utf-8")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    # The page sets the width of a figure, and its view box sets the height.
    svg = re.sub(r'^<svg([^>]*?) width="[^"]*"', r"<svg\1", svg)
    svg = re.sub(r'^<svg([^>]*?) height="[^"]*"', r"<svg\1", svg)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{description}"', 1)
    # Only inside tags: the text between them may be the name of a class.
    svg = re.sub(r"<[^>]+>", lambda tag: _page_tag(tag.group(), name), svg)
    for gid, hint in (hints or {}).items():
        opening = f'<g id="{name}-{gid}">'
        svg = svg.replace(opening, f"{opening}<title>{escape(hint)}</title>", 1)
    return svg


def _page_tag(tag: str, name: str) -> str:
    """A tag with unique ids, and with the font and colours of the page."""
    tag = re.sub(r'\bid="', f'id="{name}-', tag)
    tag = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r"font-family: [^;\"]*;? ?", "", tag)
    for field, colour in asdict(PAGE).items():
        tag = tag.replace(colour, f"var(--{field})")
    return tag


def _short(label: Hashable, limit: int = 18) -> str:
    name = str(label)
    return name if len(name) <= limit else name[: limit - 1] + "…"
