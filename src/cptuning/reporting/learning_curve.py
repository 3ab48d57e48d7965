"""A measured learning curve: its intervals, its verdict, its HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt
from typing import Any

import numpy as np

from cptuning.reporting.figures import curve_png, curve_svg
from cptuning.reporting.formatting import format_interval, format_percent
from cptuning.reporting.html import html_page, table_html

# The smallest gain that counts, the largest that does not matter, and the fewest test answers
# that allow a verdict.
GAIN = 0.01
LITTLE = 0.02
FEWEST_ANSWERS = 50

RULE = (
    "The rule: the gain is the difference in accuracy between the largest size and the size "
    "closest to half of it, for each repeat. Still rising: the mean gain is at least 1 point and "
    "its 80 % interval is above zero. Levelled off: the mean gain is below 1 point and its "
    "interval is below 2 points. Unclear: anything else, fewer than two repeats, or fewer than "
    f"{FEWEST_ANSWERS} test answers."
)


@dataclass
class LearningCurve:
    """The accuracies measured so far, by size; one per repeat."""

    accuracies: dict[int, list[float]]
    majority: float
    """The accuracy of always predicting the most frequent class, or labels, of the test data."""
    answers: int
    """How many different test texts are answered per size, over all repeats."""
    label_sets: bool = False
    """Whether texts have several labels: then the micro-F1 is measured by texts per label."""

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return "micro-F1" if self.label_sets else "accuracy"

    @property
    def per(self) -> str:
        """What has so many examples."""
        return "label" if self.label_sets else "class"

    @property
    def baseline(self) -> str:
        """What is compared with."""
        return "same labels for all" if self.label_sets else "majority"

    def points(self) -> list["CurvePoint"]:
        """One point for each size that was measured.

        >>> curve = LearningCurve({2: [0.5, 0.7], 4: []}, majority=0.5, answers=100)
        >>> [(point.size, round(point.mean, 2)) for point in curve.points()]
        [(2, 0.6)]
        """
        return [CurvePoint(size, values) for size, values in self.accuracies.items() if values]

    @property
    def gain(self) -> tuple[float, tuple[float, float]] | None:
        """The mean gain of the last doubling and its 80 % interval, from paired repeats."""
        points = self.points()
        if len(points) < 2:
            return None
        last = points[-1]
        before = min(points[:-1], key=lambda point: abs(point.size - last.size / 2))
        pairs = zip(last.values, before.values, strict=False)
        gains = [after - earlier for after, earlier in pairs]
        interval = _interval(gains, confidence=0.80)
        return None if interval is None else (float(np.mean(gains)), interval)

    @property
    def state(self) -> str:
        """``"rising"``, ``"levelled-off"`` or ``"unclear"``, by :data:`RULE`.

        >>> LearningCurve({8: [0.6, 0.61], 16: [0.7, 0.7]}, majority=0.5, answers=90).state
        'rising'
        >>> LearningCurve({8: [0.7, 0.7], 16: [0.7, 0.7]}, majority=0.5, answers=90).state
        'levelled-off'
        >>> LearningCurve({8: [0.5, 0.7], 16: [0.7, 0.5]}, majority=0.5, answers=90).state
        'unclear'
        """
        if self.gain is None or self.answers < FEWEST_ANSWERS:
            return "unclear"
        mean, (low, high) = self.gain
        if mean >= GAIN and low > 0:
            return "rising"
        return "levelled-off" if mean < GAIN and high < LITTLE else "unclear"

    @property
    def verdict(self) -> str:
        """Whether more labels would help, in one sentence."""
        if self.state == "unclear":
            return f"It is unclear whether more labels would help: {self._why_unclear()}"
        assert self.gain is not None
        mean, (low, high) = self.gain
        gain = (
            f"the last doubling changed {self.metric} by {_signed(mean)} points "
            f"(80 % interval {_signed(low)} to {_signed(high)})"
        )
        if self.state == "rising":
            return f"The curve is still rising, so more labels are likely to help: {gain}."
        return f"The curve has levelled off, so more labels would help little: {gain}."

    def _why_unclear(self) -> str:
        if len(self.points()) < 2:
            return "fewer than two sizes were measured."
        if self.gain is None:
            return "there is only one repeat; use more repeats."
        if self.answers < FEWEST_ANSWERS:
            return (
                f"there are only {self.answers} test answers; test on at least {FEWEST_ANSWERS} "
                "texts."
            )
        mean, (low, high) = self.gain
        return (
            f"the last doubling changed {self.metric} by {_signed(mean)} points, but the 80 % "
            f"interval is {_signed(low)} to {_signed(high)}; more repeats make it narrower."
        )

    def summary(self) -> dict[str, Any]:
        """The curve as a JSON object."""
        return {
            "sizes": [
                {
                    "size": point.size,
                    "accuracy": point.mean,
                    "interval": None if point.interval is None else list(point.interval),
                    "repeats": point.values,
                }
                for point in self.points()
            ],
            "majority": self.majority,
            "metric": self.metric,
            "test_answers": self.answers,
            "state": self.state,
            "verdict": self.verdict,
        }

    def html(self, source: str) -> str:
        """The curve as an HTML page; ``source`` is the name of the training data."""
        rows = [
            [str(p.size), format_percent(p.mean), p.interval_text, str(len(p.values))]
            for p in self.points()
        ]
        header = [f"examples per {self.per}", self.metric, "95 % interval", "repeats"]
        picture = curve_svg(self.points(), self.majority, self.metric, self.per)
        body = f"""<h1>Would more labels help?</h1>
<p class="muted">{escape(source)}</p>
<div class="headline"><p>{escape(self.verdict)}</p></div>
<section><div class="picture wide">{picture}</div></section>
<section>{table_html(header, rows, numbers=3)}</section>
<p class="muted small">The band is the 95 % interval over the repeats, the dots are the repeats.
{escape(RULE)}</p>"""
        return html_page(f"Would more labels help? {source}", body)

    def png(self) -> bytes:
        """The curve as a PNG file."""
        return curve_png(self.points(), self.majority, self.metric, self.per)


@dataclass(frozen=True)
class CurvePoint:
    """The accuracies at one size, one per repeat."""

    size: int
    values: list[float]

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.values))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the mean over the repeats; None for a single one.

        >>> CurvePoint(8, [0.5, 0.6, 0.7]).interval
        (0.351..., 0.848...)
        """
        found = _interval(self.values, confidence=0.95)
        return None if found is None else (max(0.0, found[0]), min(1.0, found[1]))

    @property
    def interval_text(self) -> str:
        """The interval as text."""
        if self.interval is None:
            return "–"
        return format_interval(*self.interval)


def _interval(values: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """Student's t interval of the mean; None for a single value."""
    from scipy.stats import t  # type: ignore[import-untyped]  # Comes with scikit-learn.

    if len(values) < 2:
        return None
    mean = float(np.mean(values))
    quantile = float(t.ppf((1 + confidence) / 2, df=len(values) - 1))
    half = quantile * float(np.std(values, ddof=1)) / sqrt(len(values))
    return mean - half, mean + half


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}"
