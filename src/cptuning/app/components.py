"""Parts of the page that every tab uses."""

from typing import Any

import gradio as gr


def shown(value: str = "", *, script: str | None = None, **options: Any) -> gr.HTML:
    """A place for HTML in the page's own style; a script is run once, when it appears."""
    return gr.HTML(value, js_on_load=script, apply_default_css=False, **options)


def heading(title: str) -> gr.HTML:
    """The title of a section."""
    return shown(f"<h2>{title}</h2>")
