"""How much may come in: limits that keep a file of a stranger's from taking the whole machine.

Each can be raised, or lowered, by an environment variable.
"""

import os
from dataclasses import dataclass

from cptuning.errors import CPTuningError


@dataclass(frozen=True)
class Limit:
    """A limit, and the environment variable that sets another one."""

    variable: str
    usual: int
    unit: str
    of: str
    """What it is a limit of, for the documentation."""
    largest: int = 2**63 - 1

    def value(self) -> int:
        """The limit that holds.

        >>> Limit("CPTUNING_NO_SUCH_LIMIT", 100, "bytes", "of a line").value()
        100
        """
        given = os.environ.get(self.variable, str(self.usual))
        try:
            value = int(given)
        except ValueError:
            value = 0
        if not 0 < value <= self.largest:
            raise CPTuningError(
                f"{self.variable} is {given!r}: give a number of {self.unit} up to {self.largest}."
            )
        return value


LONGEST_LINE = Limit(
    "CPTUNING_LONGEST_LINE",
    64_000_000,
    "bytes",
    "of a line, or characters of a cell, of a file",
    largest=2**31 - 1,  # The csv module needs a C long, which is this short on some platforms.
)
LARGEST_FILE = Limit(
    "CPTUNING_LARGEST_FILE", 100_000_000_000, "bytes", "of a file of texts, decompressed"
)
LARGEST_MODEL = Limit("CPTUNING_LARGEST_MODEL", 50_000_000_000, "bytes", "of a model folder")
MOST_EXAMPLES = Limit(
    "CPTUNING_MOST_EXAMPLES", 10_000_000, "examples", "in a table that is read as a whole"
)
MOST_CLASSES = Limit("CPTUNING_MOST_CLASSES", 100_000, "classes", "of a model")

LIMITS = (LONGEST_LINE, LARGEST_FILE, LARGEST_MODEL, MOST_EXAMPLES, MOST_CLASSES)
