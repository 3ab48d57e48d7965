"""Commands as forked processes that can be killed: at a moment, or at a call that writes."""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

CALLS = ("mkdir", "rename", "replace", "fsync", "unlink", "rmdir", "truncate", "open")
"""The functions of ``os`` at which a process can be killed, before or after them."""


def preload(with_torch: bool, with_page: bool = False) -> None:
    """Import what the commands need, so that a fork begins at once. Nothing is computed here."""
    import onnxruntime  # noqa: F401

    import cptuning.cli
    import cptuning.registry

    if with_page:
        import cptuning.app.page
    if with_torch:
        import onnx  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401

        import cptuning.backbone
        import cptuning.export.exporter
        import cptuning.training.loop  # noqa: F401


class Running:
    """A command in a process of its own; what it prints goes to a file."""

    def __init__(self, words: Sequence[str], folder: Path, log: Path, kill_at: int = 0) -> None:
        self._code: int | None = None
        self._pid = os.fork()
        if self._pid == 0:
            _become(words, folder, log, kill_at)

    def wait(self, seconds: float | None = None) -> int:
        """Its exit code, or minus a signal; it is killed if it takes longer than ``seconds``."""
        if seconds is not None:
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                if self.has_ended():
                    break
                time.sleep(0.002)
            else:
                return self.kill()
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def has_ended(self) -> bool:
        """Whether it has, by now."""
        if self._code is None:
            done, status = os.waitpid(self._pid, os.WNOHANG)
            if done:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code is not None

    def end(self, how: signal.Signals) -> int:
        """Its exit code, or minus a signal, after a signal."""
        if not self.has_ended():
            os.kill(self._pid, how)
        return self.wait()

    def kill(self) -> int:
        """The same after SIGKILL."""
        return self.end(signal.SIGKILL)


def _become(words: Sequence[str], folder: Path, log: Path, kill_at: int) -> NoReturn:
    code = 70
    try:
        os.chdir(folder)
        tempfile.tempdir = None  # $TMPDIR may be another one by now.
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        calls = _count_calls(kill_at)
        sys.argv = ["cptuning", *words]
        from cptuning.__main__ import main

        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        sys.stdout.flush()
        with log.with_suffix(".calls").open("w") as file:
            file.write(str(calls[0]))
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _count_calls(kill_at: int) -> list[int]:
    """Count the calls that write, twice each; the process ends at the count ``kill_at``."""
    count = [0]

    def step() -> None:
        count[0] += 1
        if count[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in CALLS:
        usual = getattr(os, name)

        def deadly(*arguments: Any, _usual: Any = usual, **options: Any) -> Any:
            step()
            answer = _usual(*arguments, **options)
            step()
            return answer

        setattr(os, name, deadly)
    return count
