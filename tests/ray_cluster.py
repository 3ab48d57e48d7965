"""A small Ray cluster for tests, and the processes in it that can be killed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def started(folder: Path) -> Iterator[None]:
    """Two CPUs on this machine; everything that Ray writes is in the folder."""
    # Nothing is sent, and no token is written into the home folder.
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100_000_000,
        _temp_dir=str(folder),
        _plasma_directory=str(folder),
    )
    yield
    ray.shutdown()


def workers(name: str) -> list[int]:
    """The processes of this cluster that do the work of that name."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title = (folder / "cmdline").read_bytes()
            if title.startswith(b"ray::") and name.encode() in title and _is_ours(int(folder.name)):
                found.append(int(folder.name))
        except OSError:  # It has just ended.
            continue
    return found


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        status = (Path("/proc") / str(pid) / "status").read_text()
        pid = int(status.partition("PPid:")[2].split()[0])
    return False
