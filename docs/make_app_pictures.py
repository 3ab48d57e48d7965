"""Take the pictures of the web page: the sample messages, trained on for a few steps.

python docs/make_app_pictures.py
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from cptuning.app.page import launch
from cptuning.app.session import AppSettings

FOLDER = Path(__file__).parent / "images"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Few, so that the pictures are soon taken; the page takes the preset's number.
STEPS = 20
PATIENCE = 600_000  # milliseconds


@contextmanager
def visit(browser: Browser, address: str, width: int, scheme: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme)
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.locator("#sample").click()
    page.locator("#instant .headline").wait_for()
    page.locator("#done-close").click()
    yield page
    page.close()


def train(page: Page) -> None:
    tab(page, "Train")
    page.locator("#train").click()
    page.locator("#trained .good").wait_for()


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def ask(page: Page, text: str) -> None:
    tab(page, "Ask")
    page.locator("#text textarea").fill(text)
    page.locator("#classify").click()
    page.locator("#answer .answer").wait_for()


def find_spans(page: Page) -> None:
    tab(page, "Spans")
    page.locator("#sample-spans").click()
    page.locator("#learn-spans").click()
    page.locator("#spans-learned .headline").wait_for()
    page.locator("#span-types").scroll_into_view_if_needed()
    page.locator("#span-texts").scroll_into_view_if_needed()


def take(page: Page, name: str) -> None:
    page.wait_for_timeout(1000)
    page.screenshot(path=FOLDER / f"app-{name}.png")


def main() -> None:
    served = launch(AppSettings(method={"steps": STEPS}))
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        with visit(browser, served.local_url, 1280, "light") as page:
            take(page, "examples")
            train(page)
            tab(page, "Review")
            page.locator("#map circle.doubted").first.click(force=True)
            page.locator("#editor").wait_for()
            take(page, "review")
            page.locator("#editor-close").click()
            page.emulate_media(color_scheme="dark")
            ask(page, "My parcel was left in the rain. Where can I complain?")
            take(page, "ask")
            page.emulate_media(color_scheme="light")
            find_spans(page)
            take(page, "spans")
            page.set_viewport_size({"width": 400, "height": 860})
            tab(page, "Review")
            page.locator("#map circle.doubted").first.click(force=True)
            page.locator("#editor").wait_for()
            take(page, "narrow")
        browser.close()
    served.close(verbose=False)


if __name__ == "__main__":
    main()
