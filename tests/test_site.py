"""The documentation site: it builds without a warning, links lead somewhere, nothing is missing."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer.main

import cptuning
from cptuning.cli import app

ROOT = Path(__file__).parents[1]


class Document(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img", "iframe") and found.get("src"):
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") in ("stylesheet", "icon"):
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def documents(site) -> dict[Path, Document]:
    # 404.html has absolute addresses, since it stands for any.
    return {path: Document(path) for path in site.rglob("*.html") if path.name != "404.html"}


def local(page: Path, address: str) -> Iterator[tuple[Path, str]]:
    """The file and the anchor that a link within the site leads to."""
    parts = urlsplit(address)
    if not parts.scheme and not parts.netloc:
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        yield (target / "index.html" if target.is_dir() else target), unquote(parts.fragment)


def test_links_and_anchors_within_the_site_lead_somewhere(documents):
    broken = [
        (page.parent.name, address)
        for page, document in documents.items()
        for address in (*document.links, *document.loaded)
        for target, anchor in local(page, address)
        if not target.is_file()
        or (anchor and target in documents and anchor not in documents[target].anchors)
    ]
    assert broken == []


def test_a_page_loads_nothing_from_other_servers(documents):
    loaded = {address for document in documents.values() for address in document.loaded}
    assert [address for address in loaded if urlsplit(address).netloc] == []
    # The theme's script asks GitHub for stars where a link to the repository is marked so.
    assert not any('data-md-component="source"' in page.read_text("utf-8") for page in documents)


def test_every_page_of_the_folder_is_in_the_navigation(site, documents):
    start = site / "index.html"
    reached = {target for link in documents[start].links for target, _ in local(start, link)}
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= {target.parent.name for target in reached}


def test_markdown_is_rendered(site):
    """Python-Markdown wants an empty line before a list or a table, where GitHub does not."""
    for page in site.rglob("index.html"):
        text = page.read_text("utf-8")
        prose = re.sub(r"<(pre|code|script)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert not re.search(r"\|---|^(- |\d+\. )|\$\$|\\frac", prose, re.MULTILINE), page.parent
    assert "<math" in (site / "method" / "index.html").read_text("utf-8")


def test_the_list_of_commands_is_not_cut_off(site):
    page = (site / "reference" / "commands" / "index.html").read_text("utf-8")
    assert "Suggest which texts to label next: uncertain ones that differ from each other." in page
    assert not re.search(r"\.\.\.\s*</(p|li)>", page)


def test_the_reference_has_every_public_name_parameter_and_command(site, documents):
    anchors = documents[site / "reference" / "python" / "index.html"].anchors
    assert {f"cptuning.{name}" for name in cptuning.__all__} <= anchors
    page = (site / "reference" / "python" / "index.html").read_text("utf-8")
    for parameter in cptuning.CPTuningClassifier.parameter_names():
        assert f"<code>{parameter}</code>" in page
    commands = documents[site / "reference" / "commands" / "index.html"].anchors
    assert {f"cptuning-{name}" for name in typer.main.get_command(app).commands} <= commands
