"""The web page: its layout, its tabs and the events that connect them."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from html import escape
from importlib.resources import files
from inspect import isgeneratorfunction
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from cptuning.app import views
from cptuning.app.components import html_block
from cptuning.app.file_access import FileAccessMiddleware, visitor_of
from cptuning.app.session import AppSettings, Session
from cptuning.app.temporary_files import gradio_folder
from cptuning.app.training_queue import TrainingQueue
from cptuning.app.workspaces import Workspaces
from cptuning.errors import CPTuningError

_TITLE = "CP-Tuning"

# So many visitors can do the same thing at once; trainings take turns, see TrainingQueue.
_AT_ONCE = 8
_INTRODUCTION = """
<h1>CP-Tuning</h1>
<p>A few labelled examples in, a text classifier out. Nothing leaves this machine.</p>
"""

_OPEN_TAB = """() => {
  document.querySelectorAll("[role=tab]")[NUMBER].click();
  window.scrollTo(0, 0);
}"""

# The escape key closes the card of an example.
_ESCAPE = """
<script>
window.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.querySelector("#editor-close")?.click();
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
        self.session = gr.State(Session(settings))
        # Whoever can read a browser's storage can read the secret, too: it protects nothing.
        self._key = gr.BrowserState("", storage_key="cptuning-workspace", secret="cptuning")
        self.queue = TrainingQueue()
        """The trainings of all visitors."""
        self._workspaces = Workspaces()
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
        both = [self.session, self._key]
        found = page.load(self._find, both, both, **options)
        found.then(self._show, self.session, parts, **options)

    def _find(self, session: Session, key: str | None, asked: gr.Request) -> tuple[Session, str]:
        """The session that this browser had before the page was loaded again, or a new one."""
        session.visitor = visitor_of(asked.headers.get("cookie", ""))
        kept = self._workspaces.find(key)
        if kept is not None:
            return kept, kept.key
        session.key = self._workspaces.new_key()  # Never one that the browser made up.
        return session, session.key

    def _show(self, session: Session) -> Iterator[list[Any]]:
        """Show the session and, if an instant model is missing, that one when it is made."""
        if session.key and session.has_work:
            self._workspaces.keep(session)
        yield [session, *(view(session) for _, view in self._views)]
        if session.needs_reading:
            session.read()
            yield [session, *(view(session) for _, view in self._views)]


def _with_error_messages(action: Callable[..., Any]) -> Callable[..., Any]:
    """The action; an error of the visitor's is shown on the page, and nothing changes."""
    if isgeneratorfunction(action):  # It shows its errors itself, before its last update.
        return action

    @wraps(action)
    def wrapped(session: Session, *inputs: Any) -> Any:
        session.dismiss()  # What was done before has been read.
        try:
            return action(session, *inputs)
        except CPTuningError as error:
            show_error(error)
            return gr.skip()

    return wrapped


def show_error(error: CPTuningError) -> None:
    """Show an error, escaped, because it may quote a text and Gradio renders it as HTML."""
    gr.Warning(escape(str(error)), duration=15)


def build(settings: AppSettings) -> gr.Blocks:
    """The whole page."""
    from cptuning.app.editor import ExampleEditor
    from cptuning.app.tabs import (
        ask_tab,
        examples_tab,
        review_tab,
        spans_tab,
        train_tab,
        use_tab,
    )

    tabs_by_title = (
        ("Examples", examples_tab),
        ("Train", train_tab),
        ("Review", review_tab),
        ("Ask", ask_tab),
        ("Use", use_tab),
    )
    page = gr.Blocks(title=_TITLE, analytics_enabled=False, delete_cache=(3600, 86400))
    with page:
        wiring = PageWiring(settings)
        html_block(_INTRODUCTION, elem_id="introduction")
        editor = ExampleEditor(wiring)
        with gr.Tabs():
            titles = [title for title, _ in tabs_by_title]
            for number, (title, tab) in enumerate(tabs_by_title):
                with gr.Tab(f"{number + 1} {title}"):
                    tab.build(wiring, editor)
                    _lead_on(number, titles)
            with gr.Tab("Spans"):  # A task of its own, not the sixth step.
                spans_tab.build(wiring)
        _offer_undo(wiring)
        wiring.connect(page)
    return page


def _lead_on(number: int, titles: Sequence[str]) -> None:
    """A button at the end of a tab that opens the next one."""
    after = (number + 1) % len(titles)
    said = f"Next: {titles[after]}" if after else f"Back to: {titles[0]}"
    with gr.Row(elem_classes="next"):
        button = gr.Button(said, elem_id=f"next-{number + 1}", scale=0, min_width=160)
    button.click(None, js=_OPEN_TAB.replace("NUMBER", str(after)))


def _offer_undo(wiring: PageWiring) -> None:
    """What was done last, in sight on every tab, with a button that undoes it."""
    with gr.Row(visible=False, elem_id="done") as bar:
        done = html_block(elem_id="done-text")
        undo = gr.Button("Undo", scale=0, min_width=80, elem_id="undo")
        close = gr.Button("Close", scale=0, min_width=80, elem_id="done-close")
    wiring.bind(bar, lambda session: gr.update(visible=bool(session.news)))
    wiring.bind(done, lambda session: views.done_view(session.news))
    wiring.on(undo.click, Session.undo)
    wiring.on(close.click, Session.dismiss)


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
        button_cancel_background_fill="#b91c1c",
        button_cancel_background_fill_dark="#b91c1c",
        button_cancel_background_fill_hover="#991b1b",
        button_cancel_background_fill_hover_dark="#991b1b",
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
    os.environ["GRADIO_TEMP_DIR"] = str(gradio_folder())
    page = build(settings)
    # Not through Gradio's css option, which would prefix each of our selectors.
    styles = [files("cptuning.app") / name for name in ("page.css", "spans.css")]
    style = "\n".join(one.read_text("utf-8") for one in styles)
    page.queue(default_concurrency_limit=_AT_ONCE)
    try:
        page.launch(
            server_name=host,
            server_port=port,
            inbrowser=browser,
            share=False,
            quiet=True,
            footer_links=[],
            theme=_theme(),
            head=f"<style>{style}</style>{_ESCAPE}",
            prevent_thread_lock=True,
            ssr_mode=False,
            max_file_size="1gb",  # A model; tables are limited by preview_file.
            app_kwargs={"middleware": [Middleware(FileAccessMiddleware)]},
        )
    except OSError as error:
        raise CPTuningError(
            f"The page can't be served at {host}:{port}: choose another --port or --host."
        ) from error
    return page
