"""Two or more ways to do the same work, timed in turns: medians, and ratios with their spread.

    times = alternate({"ours": ours, "theirs": theirs}, rounds=5)
    times.median("ours")           # seconds
    f"{times.ratio('theirs', 'ours')}"  # "2.41 (2.30 to 2.55)"

In turns, because a machine gets slower and faster by the minute: within one round both sides are
affected alike, so a ratio is taken within each round and never across rounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Ratio:
    """A ratio of two times: the median of the rounds' ratios, and the least and greatest."""

    median: float
    least: float
    most: float

    def __format__(self, digits: str) -> str:
        one = digits or ".2f"
        return f"{self.median:{one}} ({self.least:{one}} to {self.most:{one}})"


@dataclass(frozen=True)
class Times:
    """The seconds of each side by round, and what it returned."""

    seconds: dict[str, list[float]]
    results: dict[str, list[Any]]

    def median(self, side: str) -> float:
        """The median time of a side."""
        return median(self.seconds[side])

    def ratio(self, over: str, under: str) -> Ratio:
        """How many times as long the first takes as the second.

        >>> Times({"a": [2.0, 9.0], "b": [1.0, 3.0]}, {}).ratio("a", "b")
        Ratio(median=2.5, least=2.0, most=3.0)
        """
        pairs = zip(self.seconds[over], self.seconds[under], strict=True)
        ratios = [a / b for a, b in pairs]
        return Ratio(median(ratios), min(ratios), max(ratios))


def alternate(
    sides: Mapping[str, Callable[..., Any]],
    rounds: int | list[Any],
    *,
    warm: Callable[[], Any] | None = None,
    after: Callable[[Any], Any] = lambda result: result,
    clock: Callable[[], float] = perf_counter,
) -> Times:
    """Time each side once per round, in every other round in the opposite order.

    ``rounds`` is their number, or a list with an argument for each of them (a seed, a split).
    Before the first round ``warm`` is called, or else every side once, untimed. ``after`` turns
    what a side returned into what is kept of it (a score, for example), and is not timed.
    ``clock`` returns seconds.
    """
    arguments = [()] * rounds if isinstance(rounds, int) else [(value,) for value in rounds]
    if not arguments:
        raise ValueError("There are no rounds to time.")
    if warm is not None:
        warm()
    else:
        for work in sides.values():
            work(*arguments[0])
    names = list(sides)
    times = Times({name: [] for name in names}, {name: [] for name in names})
    for number, argument in enumerate(arguments):
        # Whoever is first finds the caches that the other left, so they take turns at being first.
        for name in names if number % 2 == 0 else reversed(names):
            started = clock()
            result = sides[name](*argument)
            times.seconds[name].append(clock() - started)
            times.results[name].append(after(result))
    return times
