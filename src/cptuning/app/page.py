"""The web page: its layout, its tabs and the events that connect them."""

from collections.abc import Callable, Sequence
from functools import wraps
from html import escape
from importlib.resources import files
from inspect import isgeneratorfunction
from typing import Any

import gradio as gr

from cptuning.app.components import html_block
from cptuning.app.session import AppSettings, Session
from cptuning.errors import CPTuningError

# After the last action of a visitor; then the visitor's files and model are deleted.
_HOURS_KEPT = 12

_TITLE = "CP-Tuning"
_INTRODUCTION = """
<h1>CP-Tuning</h1>
<p>A few labelled examples in, a text classifier out. Nothing leaves this machine.</p>
"""

# A visitor's work is lost when the page is closed, so the browser asks once there are examples.
_ASK_BEFORE_LEAVING = """
<script>
window.addEventListener("beforeunload", (event) => {
  if (document.querySelector("#check .headline")) event.preventDefault();
});
</script>
"""


class PageWiring:
    """What the tabs share: the visitor's session, the components that show it, and the actions.

    A component that shows something of the session is registered with :meth:`bind`, an action with
    :meth:`on`. After every action all components are updated, so none is out of date.
    """

    def __init__(self, settings: AppSettings) -> None:
        # Gradio gives each visitor a copy of this empty session.
        self.session = gr.State(
            Session(settings), time_to_live=_HOURS_KEPT * 3600, delete_callback=Session.close
        )
        self._views: list[tuple[Any, Callable[[Session], Any]]] = []
        self._actions: list[Any] = []

    def bind(self, component: Any, view: Callable[[Session], Any]) -> None:
        """Let a component show what ``view`` makes of the session."""
        self._views.append((component, view))

    def on(
        self,
        trigger: Any,
        action: Callable[..., Any],
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        **options: Any,
    ) -> Any:
        """Call ``action`` with the session and the inputs when ``trigger`` fires."""
        event = trigger(
            _with_error_messages(action),
            [self.session, *inputs],
            list(outputs),
            api_visibility="private",
            **options,
        )
        self._actions.append(event)
        return event

    def listen(
        self,
        trigger: Any,
        action: Callable[..., Any],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        """The same for an action that changes nothing of the session."""
        trigger(
            _with_error_messages(action),
            [self.session, *inputs],
            list(outputs),
            show_progress="hidden",
            api_visibility="private",
        )

    def connect(self, page: gr.Blocks) -> None:
        """Update all components when the page loads and after each action."""
        # The unchanged session is an output too: that is how Gradio knows that it is still in use.
        parts = [self.session, *(component for component, _ in self._views)]
        options: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        for event in self._actions:
            event.then(self._show, self.session, parts, **options)
            # After an error, this version of Gradio does not run "then" in the browser.
            event.failure(self._show, self.session, parts, **options)
        page.load(self._show, self.session, parts, **options)

    def _show(self, session: Session) -> list[Any]:
        return [session, *(view(session) for _, view in self._views)]


def _with_error_messages(action: Callable[..., Any]) -> Callable[..., Any]:
    """The action; an error of the visitor's is shown on the page, and nothing changes."""
    if isgeneratorfunction(action):  # It shows its errors itself, before its last update.
        return action

    @wraps(action)
    def wrapped(*inputs: Any) -> Any:
        try:
            return action(*inputs)
        except CPTuningError as error:
            show_error(error)
            return gr.skip()

    return wrapped


def show_error(error: CPTuningError) -> None:
    """Show an error, escaped, because it may quote a text and Gradio renders it as HTML."""
    gr.Warning(escape(str(error)), duration=15)


def build(settings: AppSettings) -> gr.Blocks:
    """The whole page."""
    from cptuning.app.tabs import ask_tab, examples_tab, review_tab, train_tab, use_tab

    page = gr.Blocks(title=_TITLE, analytics_enabled=False, delete_cache=(3600, 86400))
    with page:
        wiring = PageWiring(settings)
        html_block(_INTRODUCTION, elem_id="introduction")
        with gr.Tabs():
            for title, tab in (
                ("1 Examples", examples_tab),
                ("2 Train", train_tab),
                ("3 Review", review_tab),
                ("4 Ask", ask_tab),
                ("5 Use", use_tab),
            ):
                with gr.Tab(title):
                    tab.build(wiring)
        wiring.connect(page)
    return page


def _theme() -> gr.themes.Base:
    """A theme with plain buttons, system fonts, and small print with enough contrast."""
    theme = gr.themes.Default(
        primary_hue="blue", font=["system-ui", "sans-serif"], font_mono=["monospace"]
    )
    return theme.set(
        body_text_color_subdued="*neutral_500",
        body_text_color_subdued_dark="*neutral_400",
        block_info_text_color="*neutral_500",
        block_info_text_color_dark="*neutral_400",
        input_placeholder_color="*neutral_500",
        input_placeholder_color_dark="*neutral_400",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_large_text_weight="500",
        button_large_text_size="*text_md",
        button_large_padding="*spacing_md *spacing_lg",
    )


def launch(
    settings: AppSettings,
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = False,
) -> gr.Blocks:
    """Serve the page until it is closed; its address is in ``local_url``."""
    page = build(settings)
    # Not through Gradio's css option, which would prefix each of our selectors.
    style = (files("cptuning.app") / "page.css").read_text("utf-8")
    try:
        page.launch(
            server_name=host,
            server_port=port,
            inbrowser=browser,
            share=False,
            quiet=True,
            footer_links=[],
            theme=_theme(),
            head=f"<style>{style}</style>{_ASK_BEFORE_LEAVING}",
            prevent_thread_lock=True,
            ssr_mode=False,
            max_file_size="100mb",
        )
    except OSError as error:
        raise CPTuningError(
            f"The page can't be served at {host}:{port}: choose another --port or --host."
        ) from error
    return page
