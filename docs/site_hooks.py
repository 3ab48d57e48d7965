"""What MkDocs is told beyond mkdocs.yml: pages made from the code, and files outside this folder.

The pages of docs/ are read on GitHub, too, so their links to other files are relative. Here such a
link leads to the file's page on the site where it has one, and to the repository otherwise.
"""

import posixpath
import re
from html import unescape
from importlib import import_module
from pathlib import Path

import latex2mathml.converter
import typer.cli
import typer.main
from mkdocs.structure.files import File

REPOSITORY = Path(__file__).parents[1]
INCLUDED = (
    "CHANGELOG.md",
    "benchmarks/*.md",
    "results/*/*.md",
    "results/*/*.png",
    "results/*/figures/*.png",
)
# The pages made from docstrings: title, package, and its names; None stands for all public ones.
REFERENCE = {
    "reference/python.md": ("Python", "cptuning", None),
    "reference/methods.md": ("Methods", "cptuning.estimator", None),
    "reference/backbones.md": ("Backbones", "cptuning.backbone", ("load_backbone", "Backbone")),
    "reference/losses.md": ("Losses", "cptuning.losses", None),
    "reference/callbacks.md": (
        "Callbacks",
        "cptuning.training",
        (
            "Callback",
            "Score",
            "Tracker",
            "TensorBoardTracker",
            "MLflowTracker",
            "WandbTracker",
            "TrackioTracker",
        ),
    ),
}
LINK = re.compile(r"\]\(([^()\s]+)\)")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config):
    """A new page is a how-to guide, unless the navigation says otherwise."""
    listed = str(config["nav"])
    [guides] = [entry["How-to guides"] for entry in config["nav"] if "How-to guides" in entry]
    for path in sorted(Path(config["docs_dir"]).glob("*.md")):
        if f"'{path.name}'" not in listed:
            guides.append(path.name)
    return config


def on_files(files, config):
    """Add the pages that are not in docs/."""
    for pattern in INCLUDED:
        for path in sorted(REPOSITORY.glob(pattern)):
            place = path.relative_to(REPOSITORY).as_posix()
            files.append(File.generated(config, place, abs_src_path=str(path)))
    described = set()
    for place, (title, package, chosen) in REFERENCE.items():
        public = chosen or import_module(package).__all__
        names = [name for name in public if name not in described]
        described.update(names)
        files.append(File.generated(config, place, content=reference_page(title, package, names)))
    files.append(File.generated(config, "reference/commands.md", content=command_reference()))
    return files


def reference_page(title, package, names):
    """A page for mkdocstrings, with one entry for each name."""
    entries = [f"::: {package}.{name}" for name in names]
    return "\n\n".join([f"# {title}", f"The public names of `{package}`.", *entries]) + "\n"


def command_reference():
    """All commands with their options, as Typer describes them."""
    from cptuning.cli import app

    command = typer.main.get_command(app)
    _describe_in_full(command)
    with command.make_context("cptuning", [], resilient_parsing=True) as context:
        page = typer.cli.get_docs_for_click(obj=command, ctx=context, name="cptuning")
    return re.sub(r"^(#+) `cptuning(.*)`$", r"\1 cptuning\2", page, flags=re.MULTILINE)


def _describe_in_full(group):
    """Let lists of commands have the whole first line of each, not its first 45 characters."""
    for command in group.commands.values():
        command.short_help = command.help.splitlines()[0]
        if hasattr(command, "commands"):
            _describe_in_full(command)


def on_page_markdown(markdown, page, config, files):
    """Lead the links of a page to where their files are on the site, or in the repository."""
    uri = page.file.src_uri
    folder = posixpath.dirname(uri if (REPOSITORY / uri).is_file() else f"docs/{uri}")

    def led(match):
        path, hash_sign, anchor = match[1].partition("#")
        place = posixpath.normpath(posixpath.join(folder, path))
        if not path or ":" in path or not (REPOSITORY / place).exists():
            return match[0]
        target = place.removeprefix("docs/")
        if files.get_file_from_path(target):
            path = posixpath.relpath(target, posixpath.dirname(uri) or ".")
        else:
            path = f"{config['repo_url']}/blob/main/{place}"
        return f"]({path}{hash_sign}{anchor})"

    return LINK.sub(led, markdown)


def on_page_content(content, page, config, files):
    """Formulas as MathML, which browsers draw without a script."""

    def drawn(match):
        if match[1] == "span":
            return latex2mathml.converter.convert(unescape(match[2]))
        formula = latex2mathml.converter.convert(unescape(match[2]), display="block")
        return f'<div class="formula">{formula}</div>'

    return FORMULA.sub(drawn, content)
