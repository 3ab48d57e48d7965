"""The page: its frame, and how every tab's parts hang together."""

from collections.abc import Callable, Sequence
from functools import wraps
from html import escape
from importlib.resources import files
from inspect import isgeneratorfunction
from typing import Any

import gradio as gr

from cptuning.app.components import shown
from cptuning.app.session import AppSettings, Session
from cptuning.errors import CPTuningError

# After the last action; the visitor's files and model go then.
_HOURS_KEPT = 12

_TITLE = "CP-Tuning"
_INTRODUCTION = """
<h1>CP-Tuning</h1>
<p>A few labelled examples in, a text classifier out. Nothing leaves this machine.</p>
"""

# A visitor's work is lost with the page: the browser asks, once there are examples.
_ASK_BEFORE_LEAVING = """
<script>
window.addEventListener("beforeunload", (event) => {
  if (document.querySelector("#check .headline")) event.preventDefault();
});
</script>
"""


class PageWiring:
    """What the tabs share: the visitor's session, what shows it, and what is done with it.

    A part that shows something of the session is registered with :meth:`shows`; an action is wired
    with :meth:`does`. After every action all parts are shown anew, so none can be out of date.
    """

    def __init__(self, settings: AppSettings) -> None:
        # Gradio gives each visitor a copy of this empty one.
        self.session = gr.State(
            Session(settings), time_to_live=_HOURS_KEPT * 3600, delete_callback=Session.close
        )
        self._views: list[tuple[Any, Callable[[Session], Any]]] = []
        self._actions: list[Any] = []

    def shows(self, part: Any, view: Callable[[Session], Any]) -> Any:
        """Have a part of the page show something of the session."""
        self._views.append((part, view))
        return part

    def does(
        self,
        trigger: Any,
        action: Callable[..., Any],
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        **options: Any,
    ) -> Any:
        """When that happens, this is done with the session and the inputs."""
        event = trigger(
            _telling(action),
            [self.session, *inputs],
            list(outputs),
            api_visibility="private",
            **options,
        )
        self._actions.append(event)
        return event

    def connect(self, page: gr.Blocks) -> None:
        """Show everything at the beginning and after each action."""
        # The session as well, unchanged as it is: that is how Gradio knows it is still in use.
        parts = [self.session, *(part for part, _ in self._views)]
        options: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        for event in self._actions:
            event.then(self._show, self.session, parts, **options)
            # In the browser this Gradio runs no "then" after an error.
            event.failure(self._show, self.session, parts, **options)
        page.load(self._show, self.session, parts, **options)

    def _show(self, session: Session) -> list[Any]:
        return [session, *(view(session) for _, view in self._views)]


def _telling(action: Callable[..., Any]) -> Callable[..., Any]:
    """The action; a visitor's mistake becomes a sentence on the page, and nothing changes."""
    if isgeneratorfunction(action):  # It tells by itself, before its last update.
        return action

    @wraps(action)
    def told(*inputs: Any) -> Any:
        try:
            return action(*inputs)
        except CPTuningError as error:
            tell(error)
            return gr.skip()

    return told


def tell(error: CPTuningError) -> None:
    """Show the sentence; it may quote a text, and the page would take it for HTML."""
    gr.Warning(escape(str(error)), duration=15)


def build(settings: AppSettings) -> gr.Blocks:
    """The whole page."""
    from cptuning.app.tabs import ask_tab, examples_tab, review_tab, train_tab, use_tab

    page = gr.Blocks(title=_TITLE, analytics_enabled=False, delete_cache=(3600, 86400))
    with page:
        frame = PageWiring(settings)
        shown(_INTRODUCTION, elem_id="introduction")
        with gr.Tabs():
            for title, tab in (
                ("1 Examples", examples_tab),
                ("2 Train", train_tab),
                ("3 Review", review_tab),
                ("4 Ask", ask_tab),
                ("5 Use", use_tab),
            ):
                with gr.Tab(title):
                    tab.build(frame)
        frame.connect(page)
    return page


def _theme() -> gr.themes.Base:
    """Quiet buttons, fonts that are there already, and small print with enough contrast."""
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
    """Serve the page from now on, until it is closed; its address is in ``local_url``."""
    page = build(settings)
    # Not as Gradio's css: it would put a selector of its own before each of ours.
    style = (files("cptuning.app") / "page.css").read_text("utf-8")
    try:
        page.launch(
            server_name=host,
            server_port=port,
            inbrowser=browser,
            share=False,
            quiet=True,
            footer_links=["settings"],
            theme=_theme(),
            head=f"<style>{style}</style>{_ASK_BEFORE_LEAVING}",
            prevent_thread_lock=True,
            ssr_mode=False,
            max_file_size="100mb",
        )
    except OSError as error:
        raise CPTuningError(
            f"The page cannot be served at {host}:{port}: choose another --port or --host."
        ) from error
    return page
