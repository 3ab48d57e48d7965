"""What the slow commands found when they last ran: last_runs.json, for docs/promises.md."""

import json
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.standstill import ROOT

LAST_RUNS = Path(__file__).with_name("last_runs.json")


def record(name: str, command: str, found: Sequence[str], place: Path = LAST_RUNS) -> None:
    """Keep what a command found, in sentences, in place of what it found before."""
    runs = last_runs(place)
    runs[name] = {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "found": list(found),
    }
    text = json.dumps(dict(sorted(runs.items())), indent=1, ensure_ascii=False)
    place.write_text(text + "\n", "utf-8")


def last_runs(place: Path = LAST_RUNS) -> dict[str, dict[str, Any]]:
    """What the commands found, by their names."""
    return json.loads(place.read_text("utf-8")) if place.exists() else {}


def _commit() -> str:
    words = ["git", "describe", "--always", "--abbrev=8"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.strip()
