"""Processes that stand still in the middle of their work, so that a test can end them there.

A test that watches for a file and then kills the process that wrote it races that process, and on
a busy machine it loses.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_KEPT = {signal.SIGINT, signal.SIGTERM}


def start_python(
    code: str, *arguments: Any, until: str = "", times: int = 1, **options: Any
) -> subprocess.Popen[str]:
    """Runs code in a process, up to when it has written, the nth time, a file that matches."""
    if until:
        hook = f"sys.path.insert(0, {str(ROOT)!r}); from tests.standstill import stand_still_after"
        code = f"import sys; {hook}; stand_still_after({until!r}, {times}); del sys\n{code}"
    words = [sys.executable, "-c", code, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(words, **pipes | {"encoding": "utf-8"} | options)


def stand_still_after(pattern: str, times: int) -> None:
    """Keep signals waiting until the nth matching file is in its place; then wait for one there.

    They are kept from the beginning: a signal that comes earlier, as it does after the first of
    several files, would else have acted already, and the process would wait for another one.
    """
    replace, left = Path.replace, times
    signal.pthread_sigmask(signal.SIG_BLOCK, _KEPT)

    def held(self: Path, target: Path) -> Path:
        nonlocal left
        left -= Path(target).match(pattern)
        if left or not Path(target).match(pattern):
            return replace(self, target)
        moved = replace(self, target)
        while not signal.sigpending():
            time.sleep(0.01)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _KEPT)
        return moved

    Path.replace = held  # type: ignore[method-assign, assignment]


def wait_for_files(folder: Path, pattern: str, process: subprocess.Popen[str], n: int = 1) -> None:
    """Until so many are there; a process that ends before that has failed."""
    while len(list(folder.glob(pattern))) < n:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
