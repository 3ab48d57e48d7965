"""What the tests of all folders share: tiny models, no network, no time limits on examples."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Read when transformers is imported: no test asks the hub for anything.
os.environ["HF_HUB_OFFLINE"] = "1"
# Read when torch is imported: threads waiting for each other are most of a tiny model's time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts its background jobs deaf to Ctrl-C, and so would be the tests of Ctrl-C in one.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The first call of a torch operation can take long: time limits on examples would only flicker.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first; and those of one file by one worker, unless they name a group themselves.

    Workers take groups in this order, so the short ones at the end let them finish together.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the folder of a tiny masked LM by its architecture; it is made when first wanted."""
    root = tmp_path_factory.mktemp("tiny")

    @cache
    def folder(architecture: str) -> Path:
        from tests.tiny import save_tiny

        return save_tiny(architecture, root / architecture)

    return folder


@pytest.fixture(scope="session")
def headless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny encoder without a masked-LM head."""
    from tests.tiny import save_headless

    return save_headless(tmp_path_factory.mktemp("headless"))


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Ray cluster of two workers."""
    from tests.ray_cluster import started

    with started(tmp_path_factory.mktemp("ray")):
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real one, which nobody sees."""
    from playwright.sync_api import sync_playwright

    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        opened = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield opened
        opened.close()
