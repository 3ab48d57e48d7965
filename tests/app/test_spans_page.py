"""The tab of spans in a real browser: marked with the mouse, and with the keyboard."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from cptuning.app.page import launch

PATIENCE = 60_000  # milliseconds: how long a busy machine may take, not how long it should
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def address(settings):
    page = launch(settings)
    yield page.local_url
    page.close(verbose=False)


@pytest.fixture
def page(browser, address):
    errors = []
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    page.locator("#check .note").wait_for()
    page.get_by_role("tab", name="Spans").click()
    yield page
    context.close()
    assert errors == []


def add(page, lines, type_="city"):
    page.locator("#span-lines textarea").fill(lines)
    page.locator("#add-spans").click()
    page.locator("#span-texts li").first.wait_for()
    page.locator("#span-type input, #span-type textarea").fill(type_)
    page.locator("#add-type").click()
    page.locator(f"#span-types [data-label='{type_}'][aria-pressed=true]").wait_for()


def words(page, row=0):
    return page.locator("#span-texts .words").nth(row).locator("[data-word]")


def marks(page, row=0):
    return page.locator("#span-texts .words").nth(row).locator("mark")


def drag(page, first, last):
    first.hover()
    page.mouse.down()
    last.hover()
    page.mouse.up()


def test_words_are_marked_with_the_mouse(page):
    add(page, "fly to New York on Monday\nsee you")
    drag(page, words(page).nth(3), words(page).nth(2))  # From right to left.
    expect(marks(page)).to_have_count(1)
    expect(marks(page)).to_contain_text("New York")
    page.locator("#span-type input, #span-type textarea").fill("day")
    page.locator("#add-type").click()
    page.locator("#span-types [data-label=day][aria-pressed=true]").wait_for()
    words(page).nth(5).click()
    expect(marks(page)).to_have_count(2)
    expect(marks(page).last).to_contain_text("Monday")
    expect(page.locator("#span-types [data-label=day]")).to_contain_text("1")
    marks(page).first.get_by_role("button").click()
    expect(marks(page)).to_have_count(1)
    page.locator("#undo-span").click()
    expect(marks(page)).to_have_count(2)
    page.locator("#span-types [data-label=city]").click()
    words(page).nth(5).click()
    expect(page.locator("#span-types [data-label=city]")).to_contain_text("2")


def test_the_keyboard_is_enough(page):
    add(page, "fly to New York\nsee you")
    page.locator("#span-texts .words").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(marks(page)).to_contain_text("New York")
    expect(page.locator("#span-texts .words").first).to_be_focused()
    page.keyboard.press("Delete")
    expect(marks(page)).to_have_count(0)


def test_letting_go_beside_the_texts_marks_nothing(page):
    add(page, "fly to New York")
    drag(page, words(page).nth(2), page.locator("#span-lines"))
    drag(page, words(page).nth(0), words(page).nth(0))
    expect(marks(page)).to_have_count(1)
    expect(marks(page)).to_contain_text("fly")


def test_it_learns_and_what_it_finds_is_checked(page, tmp_path):
    page.locator("#sample-spans").click()
    expect(page.locator("#span-texts li.open")).to_have_count(3)
    page.locator("#learn-spans").click()
    expect(page.locator("#spans-learned")).to_contain_text("from 5 texts with 8 spans")
    row = page.locator("#span-texts li.open").first
    row.locator("[data-do=accept]").click()
    expect(page.locator("#span-texts li.open")).to_have_count(2)
    expect(page.locator("#spans-learned")).to_contain_text("learn again")
    page.locator("#span-asked textarea").fill("a table for two in Rome on Friday")
    page.locator("#span-asked textarea").press("Enter")
    expect(page.locator("#spans-found .found")).to_contain_text("a table for two in")
    page.locator("#make-marked").click()
    with page.expect_download() as started:
        page.locator("#spans-taken a[download]").click()
    started.value.save_as(tmp_path / "marked.jsonl")
    assert len((tmp_path / "marked.jsonl").read_text("utf-8").splitlines()) == 6


def test_a_table_is_returned_with_a_column_for_each_type(page, tmp_path):
    page.locator("#sample-spans").click()
    page.locator("#learn-spans").click()
    expect(page.locator("#spans-learned")).to_contain_text("F1 in texts that were left out")
    path = tmp_path / "requests.csv"
    path.write_text("id,text\n1,fly to Oslo\n2,hello there\n")
    page.locator("#to-mark input").first.set_input_files(path)
    page.locator("#to-mark-go").click()
    expect(page.locator("#marked-rows tbody tr")).to_have_count(2)
    with page.expect_download() as started:
        page.locator("#with-spans a[download]").click()
    assert started.value.suggested_filename == "requests-spans.csv"
    started.value.save_as(tmp_path / "found.csv")
    assert (tmp_path / "found.csv").read_text("utf-8").startswith("id,text,city,day\n1,fly to")


def test_without_marks_there_is_one_sentence(page):
    add(page, "fly to New York")
    page.locator("#learn-spans").click()
    expect(page.get_by_text("Mark something first").last).to_be_visible()


def test_a_reload_finds_the_work_again(page):
    add(page, "fly to New York")
    words(page).nth(2).click()
    expect(marks(page)).to_have_count(1)
    page.reload()
    page.get_by_role("tab", name="Spans").click()
    expect(marks(page)).to_have_count(1)


def test_a_telephone_needs_no_sideways_scrolling_and_nobody_meets_a_barrier(page):
    page.locator("#sample-spans").click()
    page.locator("#learn-spans").click()
    page.locator("#spans-learned .headline").wait_for()
    page.wait_for_timeout(300)  # Colours fade into each other.
    found = [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in Axe().run(page).response["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert found == []
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_timeout(200)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 400
