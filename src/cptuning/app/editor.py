"""A card to relabel or delete the example that was picked, beside where it was picked."""

from importlib.resources import files
from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.components import html_block, labels_update
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.user_examples import Example
from cptuning.errors import CPTuningError


class ExampleEditor:
    """One card for all tabs; on a telephone it is a sheet at the bottom."""

    def __init__(self, wiring: PageWiring) -> None:
        self._wiring = wiring
        self._picked = gr.State(None)
        self._chosen: dict[gr.HTML, Any] = {}
        with gr.Column(visible=False, elem_id="editor") as self._card:
            self._text = html_block(elem_id="picked")
            self._label = gr.Dropdown(
                label="Label", allow_custom_value=True, elem_id="picked-label"
            )
            with gr.Row():
                relabel = gr.Button("Relabel", variant="primary", min_width=60, elem_id="relabel")
                delete = gr.Button("Delete", variant="stop", min_width=60, elem_id="delete")
                close = gr.Button("Close", min_width=60, elem_id="editor-close")
        wiring.bind(self._label, labels_update)
        self._parts = [self._picked, self._card, self._text, self._label]
        wiring.on(relabel.click, _relabel, [self._picked, self._label], [self._card])
        wiring.on(delete.click, _delete, [self._picked], [self._card])
        wiring.listen(close.click, _close, [], [self._card])

    def block(self, **options: Any) -> gr.HTML:
        """An HTML component in which examples can be picked, and what it offers can be done."""
        script = (files("cptuning.app") / "pick.js").read_text("utf-8")
        block = html_block(script=script, **options)
        self._chosen[block] = self._wiring.on(
            block.select, _chosen, outputs=self._parts, show_progress="hidden"
        )
        return block

    def after(self, block: gr.HTML, action: Any, inputs: list[Any], outputs: list[Any]) -> None:
        """Let an action follow what was done in a block."""
        self._wiring.on(self._chosen[block].then, action, inputs, outputs, show_progress="hidden")


def _chosen(session: Session, event: gr.SelectData) -> tuple[Any, ...]:
    """Do what a button offers, or show the example that was picked in the card."""
    chosen = event.value if isinstance(event.value, dict) else {}
    place, name = int(event.index), str(chosen.get("label", ""))
    if not 0 <= place < len(session.examples):
        raise CPTuningError("The examples have changed meanwhile: pick again.")
    example = session.examples[place]
    match chosen.get("do"):
        case "relabel":
            session.relabel(place, name)
        case "settle":
            session.settle(example.text, name)
        case "merge":
            session.merge(name, str(chosen.get("other", "")))
        case "several":
            session.allow_several(True, name)
        case _:
            value = list(example.labels) if session.several else example.label
            choices = gr.update(choices=session.labels, value=value)
            return example, gr.update(visible=True), views.text_view(example.text, 600), choices
    return None, gr.update(visible=False), "", gr.skip()


def _place(session: Session, picked: Example | None) -> int:
    """The current position of the picked example."""
    if picked is None or picked not in session.examples:
        raise CPTuningError("Pick an example first, in the map or in a list.")
    return session.examples.index(picked)


def _relabel(session: Session, picked: Example | None, label: Any) -> Any:
    session.relabel(_place(session, picked), label or "")
    return gr.update(visible=False)


def _delete(session: Session, picked: Example | None) -> Any:
    session.delete([_place(session, picked)])
    return gr.update(visible=False)


def _close(session: Session) -> Any:
    return gr.update(visible=False)
