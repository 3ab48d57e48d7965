"""The folder of this process for the visitors' files; what killed processes left is removed."""

import atexit
import os
import shutil
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from cptuning.files.locks import changing, new_locked_file

_PREFIX = "cptuning-app-"
# In each folder: its process holds the lock of this file for as long as it lives.
_OWNER = "owner"


@cache
def process_folder() -> Path:
    """A folder that only this user can read, and that goes with the process."""
    remove_abandoned(Path(gettempdir()))
    folder = Path(mkdtemp(prefix=_PREFIX))
    held = ExitStack()
    held.enter_context(new_locked_file(folder / _OWNER, str(os.getpid())))
    held.callback(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(held.close)
    return folder


def gradio_folder() -> Path:
    """Where Gradio keeps what visitors upload and fetch."""
    return process_folder() / "gradio"


def remove_abandoned(parent: Path) -> None:
    """Remove the folders whose process was killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # Another user's, one without an owner, or one whose owner lives.
            if not folder.is_symlink() and folder.stat().st_uid == os.getuid():
                with changing(folder / _OWNER, patience=0.0, sure=True):
                    shutil.rmtree(folder, ignore_errors=True)
