"""Every benchmark of speed, one after the other, into benchmarks/results.md.

    CPTUNING_DATA=folder python -m benchmarks [--quick] [training growth prediction support]

Each is a module here with a function ``section() -> str`` that measures and tells in Markdown;
with ``--quick`` those that can do less work do so. What is missing or fails is said where its
section would be, the others are run all the same, and the command fails.
"""

import argparse
import inspect
import os
import platform
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

RESULTS = Path(__file__).parent / "results.md"
SECTIONS = ("training", "growth", "prediction", "support")


def run_section(name: str, quick: bool) -> tuple[str, bool]:
    """A section's Markdown, or what went wrong in its place; and whether it went well."""
    try:
        section = import_module(f"benchmarks.{name}").section
        can_be_quick = "quick" in inspect.signature(section).parameters
        return section(**{"quick": True} if quick and can_be_quick else {}).strip(), True
    except Exception as error:
        traceback.print_exc()
        return f"## {name}\n\n**FAILED**: {type(error).__name__}: {error}", False


def write_results(sections: Sequence[str], path: Path, quick: bool) -> None:
    """All in one file, which is never half written."""
    head = (
        f"# Benchmarks\n\nWritten by `make bench`{' (quick)' if quick else ''} on "
        f"{datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} CPU cores, {platform.machine()}, "
        f"Python {platform.python_version()}."
    )
    temporary = path.with_suffix(".tmp")
    temporary.write_text("\n\n".join([head, *sections]) + "\n", "utf-8")
    temporary.replace(path)


def main(arguments: Sequence[str] | None = None, path: Path = RESULTS) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args(arguments)
    texts, failed = [], []
    for name in chosen.sections:
        print(f"{name} ...", file=sys.stderr, flush=True)
        text, went_well = run_section(name, chosen.quick)
        print(text, end="\n\n", flush=True)
        texts.append(text)
        failed += [] if went_well else [name]
        write_results(texts, path, chosen.quick)
    if failed:
        print(f"FAILED: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
