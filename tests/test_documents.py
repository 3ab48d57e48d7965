"""The README and the documentation: its first block runs, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(
        path
        for folder in ("docs", "benchmarks", "pretraining")
        for path in ROOT.glob(f"{folder}/**/*.md")
    ),
    ROOT / "src/cptuning/backbone/embedded/README.md",
]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_first_block_of_the_readme_runs_as_it_is_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = blocks((ROOT / "README.md").read_text("utf-8"), "python")[0]
    names = {}
    exec(code, names)
    classifier = names["classifier"]
    assert classifier.predict(["when will my package come?"]).tolist() == ["delivery"]
    assert classifier.predict(["I can't log in to the app"]).tolist() == ["account"]
    assert (tmp_path / "model").is_dir()


# Their Python blocks are fragments: they begin with what a reader has.
FRAGMENTS = {"backbones.md", "check.md", "rivals.md", "scale.md"}
PAGES = sorted(path for path in ROOT.glob("docs/*.md") if path.name not in FRAGMENTS)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_python_blocks_of_a_page_run_one_after_another(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": path.stem}
    for code in blocks(path.read_text("utf-8"), "python"):
        exec(compile(code, path.name, "exec"), names)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_within_the_project_lead_somewhere(path):
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text))
    broken = []
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def anchors(path):
    """The headings of a document, as GitHub names them in links."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}
