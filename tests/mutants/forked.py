"""Tests in forked processes: what all of them import is imported once."""

import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import NoReturn

GIGABYTES = 12


def preload() -> None:
    """Import what the tests need of others, and nothing that is mutated."""
    import datasets  # noqa: F401
    import hypothesis  # noqa: F401
    import onnxruntime  # noqa: F401
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import sklearn.pipeline  # noqa: F401
    import torch  # noqa: F401
    import transformers.models.bert.modeling_bert
    import transformers.models.roberta.modeling_roberta  # noqa: F401
    import typer.testing  # noqa: F401

    for plugin in entry_points(group="pytest11"):
        plugin.load()
    assert "cptuning" not in sys.modules


def said_by(root: Path) -> Path:
    """Where the tests on a copy print."""
    return root.with_suffix(".log")


def passes(tests: Sequence[str], root: Path, seconds: float) -> bool | None:
    """Whether tests pass on a copy of the repository; None if they take too long.

    Time is that of the processor, so that a busy machine kills no mutant.
    """
    child = os.fork()
    if child == 0:
        _become_pytest(tests, root, seconds)
    deadline = time.monotonic() + 60 * seconds  # For those that wait for ever, and compute nothing.
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            break
        time.sleep(0.02)
    _end_group(child)
    code = os.waitstatus_to_exitcode(status)
    return None if code in (-signal.SIGKILL, -signal.SIGXCPU) else code == 0


def _end_group(leader: int) -> None:
    """End what the tests have started and left behind."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _become_pytest(tests: Sequence[str], root: Path, seconds: float) -> NoReturn:
    code = 70
    try:
        os.setsid()
        os.chdir(root)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        said = os.open(said_by(root), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        places = [str(root / "src"), str(root)]
        sys.path[:0] = places
        os.environ["PYTHONPATH"] = os.pathsep.join(places)  # For the processes of the tests.
        sys.dont_write_bytecode = True
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
        code = int(pytest.main([*options, *tests]))
    finally:
        os._exit(code)
