"""The page in a real browser: the whole path of a visitor, wide and narrow, light and dark."""

import csv
import re
import zipfile
from dataclasses import replace
from threading import Event

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.app.conftest import BAD, FILMS, GOOD, PAIRS

from cptuning.app.background_job import TrainingProgressCallback
from cptuning.app.page import launch
from cptuning.app.review import HeldOutAnswer, Review

PATIENCE = 60_000  # milliseconds: how long a busy machine may take, not how long it should
expect.set_options(timeout=PATIENCE)

TABS = ("Examples", "Train", "Review", "Ask", "Use", "Spans")
LINES = "\n".join(f"{example.text} | {example.label}" for example in FILMS)
PAIR_LINES = "\n".join(f"{e.text[0]} | {e.text[1]} | {e.label}" for e in PAIRS)


@pytest.fixture(scope="module")
def serve():
    """Serves a page with these settings; gives its address."""
    pages = []

    def start(settings):
        pages.append(launch(settings))
        return pages[-1].local_url

    yield start
    for page in pages:
        page.close(verbose=False)


@pytest.fixture(scope="module")
def address(serve, settings):
    return serve(settings)


@pytest.fixture(scope="module")
def slow_address(serve, settings):
    """A page whose trainings take for ever."""
    return serve(replace(settings, method={"steps": 1_000_000}))


@pytest.fixture(scope="module")
def strict_address(serve, settings):
    """A page whose models know nothing but their examples."""
    return serve(replace(settings, unknown_threshold=0.999))


@pytest.fixture
def visit(browser, address):
    """Opens the page for one more visitor; nobody but this machine may be asked for anything."""
    contexts, strangers, errors = [], [], []

    def open_page(at=address, **options):
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: strangers.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(at)
        page.locator("#check .note").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    local = ("http://127.0.0.1:", "data:", "blob:")
    assert [url for url in strangers if not url.startswith(local)] == []
    assert errors == []


@pytest.fixture
def page(visit):
    return visit()


def tab(page, name):
    page.get_by_role("tab", name=name).click()


def instant(page, lines=LINES):
    add(page, lines)
    page.locator("#instant .headline").wait_for()


def add(page, lines):
    page.locator("#lines textarea").fill(lines)
    page.locator("#add").click()
    expect(page.locator("#lines textarea")).to_have_value("")


def start_training(page):
    tab(page, "Train")
    page.locator("#train").click()


def train(page, lines=LINES):
    add(page, lines)
    start_training(page)
    page.locator("#trained .good").wait_for()


def choose_label(page, place, label):
    page.locator(f"{place} input").fill(label)
    page.locator(f"{place} input").press("Enter")


def saved(page, link, folder):
    with page.expect_download() as started:
        page.locator(link).click()
    path = folder / started.value.suggested_filename
    started.value.save_as(path)
    return path


class TestExamples:
    def test_pasted_lines_are_counted_and_checked_at_once(self, page):
        add(page, f"{LINES}\n{GOOD[0]} | good\n{GOOD[1]} | bad\nso so | fair")
        check = page.locator("#check")
        expect(check).to_contain_text("11 examples in 3 classes")
        expect(check).to_contain_text("1 example repeats another")
        expect(check).to_contain_text(f"{GOOD[1]} has the labels bad and good")
        expect(check).to_contain_text("Fewer than 4 examples, hard to learn: fair (1)")
        page.locator("#tidy").click()
        expect(check).to_contain_text("10 examples in 3 classes")
        page.locator("#clear").click()
        expect(check).to_contain_text("No examples yet")
        page.locator("#undo").click()
        expect(check).to_contain_text("10 examples in 3 classes")
        expect(page.locator("#done")).not_to_be_visible()

    def test_conflicts_are_mended_where_they_are_told(self, page):
        add(page, f"{LINES}\n{GOOD[1]} | bad\nso what | Bad")
        check = page.locator("#check")
        check.get_by_role("button", name="Keep good").click()
        expect(page.locator("#done-text")).to_have_text(f"Only good now: “{GOOD[1]}”")
        expect(check).not_to_contain_text("has the labels")
        both = check.get_by_role("button", name="Call both bad")
        for _ in range(5):  # While the list is drawn anew, a click can be lost.
            if both.is_visible():
                both.click()
            page.wait_for_timeout(1000)
        expect(check).to_contain_text("9 examples in 2 classes")
        page.locator("#examples .search").fill("so what")
        row = page.locator("#examples [role=option]:visible")
        expect(row).to_have_count(1)
        expect(row).to_contain_text("bad")

    def test_a_mistake_is_one_sentence_and_nothing_is_lost(self, page):
        page.locator("#lines textarea").fill("a line <i>without</i> a label")
        page.locator("#add").click()
        expect(page.get_by_text("Line 1 has no label")).to_be_visible()
        expect(page.locator("#lines textarea")).to_have_value("a line <i>without</i> a label")

    def test_an_ordinary_spreadsheet_is_previewed_and_its_columns_are_chosen(self, page, tmp_path):
        path = tmp_path / "films.csv"
        lines = ["Nr;Was gesagt wurde;Größe", *(f'1;"{e.text}";{e.label}' for e in FILMS)]
        path.write_bytes("\n".join(lines).encode("cp1252"))
        page.locator("#examples-file input").set_input_files(path)
        preview = page.locator("#examples-file-preview")
        expect(preview).to_contain_text(GOOD[0])
        expect(page.locator("#examples-file-text input")).to_have_value("Was gesagt wurde")
        choose_label(page, "#examples-file-label", "Was gesagt wurde")
        page.locator("#examples-file-go").click()
        problem = page.locator("#examples-file-problem")
        expect(problem).to_contain_text("'Was gesagt wurde' is chosen twice")
        choose_label(page, "#examples-file-label", "Größe")
        expect(preview.locator("th").last).to_have_text("Größe label")
        page.locator("#examples-file-go").click()
        expect(page.locator("#check")).to_contain_text("8 examples in 2 classes")
        expect(problem).to_contain_text("8 examples added from films.csv.")
        expect(preview).not_to_be_visible()

    def test_a_file_that_cannot_be_read_is_called_by_its_name_in_its_place(self, page, tmp_path):
        path = tmp_path / "broken.xlsx"
        path.write_text("no spreadsheet")
        page.locator("#examples-file input").set_input_files(path)
        problem = page.locator("#examples-file-problem")
        expect(problem).to_contain_text("broken.xlsx is not a valid XLSX file")
        expect(problem).not_to_contain_text("/broken.xlsx")

    def test_a_sample_is_one_click_away(self, page):
        page.locator("#sample").click()
        expect(page.locator("#check")).to_contain_text("96 examples in 6 classes")


class TestInstantAnswers:
    def test_two_classes_of_two_examples_are_answered_without_a_click(self, page):
        add(page, "\n".join(LINES.splitlines()[:1] + LINES.splitlines()[4:]))
        expect(page.locator("#instant")).to_contain_text("add two examples each of two classes")
        add(page, LINES.splitlines()[1])
        said = page.locator("#instant")
        expect(said).to_contain_text(re.compile(r"\d+ % accuracy on .*, without training"))
        expect(said).to_contain_text(re.compile(r"95 % interval \d+ to \d+ %"))
        expect(said).to_contain_text("So few examples promise nothing yet")
        page.locator("#next-1").click()
        expect(page.locator("#train")).to_have_text("Improve it")
        page.locator("#next-2").click()
        expect(page.locator("#map circle")).to_have_count(6)
        page.locator("#next-3").click()
        page.locator("#text textarea").fill(GOOD[0])
        page.locator("#classify").click()
        expect(page.locator("#answer .answer")).to_contain_text("good 100 %")
        expect(page.locator("#answer")).to_contain_text("It is one of your examples")

    def test_a_reload_finds_the_work_again_and_nobody_else_does(self, visit):
        page, stranger = visit(), visit()
        instant(page)
        page.reload()
        expect(page.locator("#check")).to_contain_text("8 examples in 2 classes")
        expect(page.locator("#instant .headline")).to_be_visible()
        stranger.reload()
        expect(stranger.locator("#check")).to_contain_text("No examples yet")


class TestTraining:
    def test_nothing_to_train_on_is_told(self, page):
        start_training(page)
        expect(page.get_by_text("Add examples first: paste some")).to_be_visible()
        expect(page.locator("#train")).to_be_enabled()

    def test_it_shows_its_progress_others_wait_and_both_can_be_cancelled(self, visit, slow_address):
        page, another = visit(slow_address), visit(slow_address)
        add(page, LINES)
        start_training(page)
        expect(page.get_by_role("progressbar")).to_be_visible()
        expect(page.locator("#progress")).to_contain_text(
            re.compile(r"Checking \(1 of 2\).*about .* left")
        )
        expect(page.locator("#train")).to_be_disabled()
        add(another, LINES)
        start_training(another)
        waiting = re.compile(r"Another training is running, yours is next \(about .*\)\.")
        expect(another.locator("#progress")).to_contain_text(waiting)
        another.locator("#cancel").click()
        expect(another.locator("#train")).to_be_enabled()
        expect(another.locator("#progress")).not_to_contain_text("Another")
        page.locator("#cancel").click()
        expect(page.get_by_text("nothing is lost")).to_be_visible()
        expect(page.locator("#train")).to_be_enabled()
        tab(page, "Examples")
        expect(page.locator("#check")).to_contain_text("8 examples")


class TestReview:
    @pytest.fixture
    def page(self, visit):
        page = visit()
        instant(page)
        tab(page, "Review")
        page.locator("#map circle").first.wait_for()
        return page

    def test_figures_and_pictures_are_there(self, page):
        accuracy = page.locator("#accuracy")
        expect(accuracy).to_contain_text(re.compile(r"\d+ % accuracy on examples it had not seen"))
        expect(accuracy).to_contain_text(re.compile(r"95 % interval \d+ to \d+ %"))
        expect(page.locator("#map circle")).to_have_count(8)
        expect(page.locator("#confusion svg")).to_be_visible()
        expect(page.locator("#doubtful")).not_to_be_empty()

    def test_a_point_is_read_and_picked_relabelled_and_deleted(self, page):
        point = page.locator("#map circle").last  # drawn last: no other point can lie on it
        point.hover(force=True)
        expect(page.locator("#map .tip")).to_have_text(f"bad: {BAD[-1]}")
        point.click(force=True)
        expect(page.locator("#picked")).to_have_text(BAD[-1])
        dot, card = point.bounding_box(), page.locator("#editor").bounding_box()
        assert abs(card["x"] - dot["x"]) < 400
        choose_label(page, "#picked-label", "good")
        page.locator("#relabel").click()
        expect(page.locator("#done-text")).to_have_text(f"Now good: “{BAD[-1]}”")
        expect(page.locator("#editor")).not_to_be_visible()
        expect(page.locator("#map [role=option]", has_text=BAD[-1])).to_contain_text("good")
        page.locator("#map [role=option]", has_text=BAD[0]).click()
        expect(page.locator("#picked")).to_have_text(BAD[0])
        page.locator("#delete").click()
        expect(page.locator("#map circle")).to_have_count(7)
        tab(page, "Examples")
        expect(page.locator("#check")).to_contain_text("7 examples in 2 classes")

    def test_on_a_telephone_a_picked_point_opens_a_sheet_at_the_bottom(self, page):
        page.set_viewport_size({"width": 400, "height": 800})
        page.locator("#map circle").last.click(force=True)
        expect(page.locator("#picked")).to_have_text(BAD[-1])
        box = page.locator("#editor").bounding_box()
        assert box["width"] >= 390
        assert abs(box["y"] + box["height"] - 800) < 2
        dot = page.locator("#map circle").last.bounding_box()
        assert 0 < dot["y"] < box["y"]  # What was picked stays in sight.
        page.keyboard.press("Escape")
        expect(page.locator("#editor")).not_to_be_visible()

    def test_a_doubtful_label_is_mended_with_one_click(self, visit, monkeypatch):
        def doubtful(review, among):
            doubt = HeldOutAnswer(FILMS[0], "bad", 0.9, 0.1, 0.8)
            return [doubt] if FILMS[0] in among else []

        monkeypatch.setattr(Review, "doubtful", doubtful)
        page = visit()
        instant(page)
        tab(page, "Review")
        row = page.locator("#doubtful li")
        expect(row).to_contain_text("labelled good, the model says bad (90 %)")
        row.get_by_role("button", name="Make it bad").click()
        expect(page.locator("#done-text")).to_have_text(f"Now bad: “{GOOD[0]}”")
        expect(page.locator("#doubtful")).to_contain_text("The model doubts none of the labels.")
        page.locator("#undo").click()
        expect(row).to_contain_text(GOOD[0])

    def test_the_learning_curve_is_measured(self, page):
        page.locator("#measure").click()
        expect(page.locator("#curve svg")).to_be_visible()
        expect(page.locator("#measure")).to_be_enabled()
        expect(page.locator("#curve")).to_contain_text("whether more labels would help")


class TestWhileATrainingIsUnderWay:
    UNDER_WAY = "A new model is being trained: until it is done, this is the previous one."

    @pytest.fixture
    def may_end(self, monkeypatch):
        """No training ends before this is set."""
        event, on_start = Event(), TrainingProgressCallback.on_start

        def on_start_later(self, *facts):
            event.wait()
            on_start(self, *facts)

        monkeypatch.setattr(TrainingProgressCallback, "on_start", on_start_later)
        yield event
        event.set()

    @pytest.fixture
    def page(self, visit):
        page = visit()
        add(page, LINES)
        return page

    @pytest.fixture
    def said(self, page):
        return page.locator("#accuracy .note", has_text="being trained")

    @pytest.mark.parametrize("width", [1280, 400])
    def test_the_review_says_so_and_is_renewed_by_itself(self, page, said, may_end, width):
        page.set_viewport_size({"width": width, "height": 800})
        start_training(page)
        tab(page, "Review")
        expect(said).to_have_text(self.UNDER_WAY)
        expect(said).to_be_visible()
        may_end.set()
        expect(said).to_have_count(0)
        expect(page.locator("#accuracy .headline")).not_to_contain_text("without training")
        expect(page.locator("#accuracy")).to_contain_text(
            re.compile(r"Training (helped|did not help): \d+ % before, \d+ % after it")
        )
        expect(page.locator("#map circle")).to_have_count(8)
        expect(page.locator("#confusion svg")).to_be_visible()
        page.locator("#map [role=option]", has_text=BAD[0]).click()
        expect(page.locator("#picked")).to_have_text(BAD[0])

    def test_who_asks_meanwhile_is_answered_without_training(self, page, may_end):
        start_training(page)
        expect(page.locator("#cancel")).to_be_enabled()
        tab(page, "Ask")
        page.locator("#text textarea").fill("hello")
        page.locator("#classify").click()
        expect(page.locator("#answer .answer")).to_be_visible()

    @pytest.mark.parametrize(("where", "button"), [("Train", "#cancel"), ("Examples", "#clear")])
    def test_a_cancelled_one_leaves_no_trace(self, visit, slow_address, where, button):
        page = visit(slow_address)
        said = page.locator("#accuracy .note", has_text="being trained")
        add(page, LINES)
        start_training(page)
        tab(page, "Review")
        expect(said).to_have_text(self.UNDER_WAY)
        tab(page, where)
        page.locator(button).click()
        tab(page, "Review")
        expect(said).to_have_count(0)

    def test_a_failed_one_leaves_none(self, page, said, may_end, monkeypatch):
        def fail(self, *facts):
            may_end.wait()
            raise RuntimeError("for the test")

        monkeypatch.setattr(TrainingProgressCallback, "on_start", fail)
        start_training(page)
        tab(page, "Review")
        expect(said).to_have_text(self.UNDER_WAY)
        may_end.set()
        expect(said).to_have_count(0)
        tab(page, "Train")
        expect(page.locator("#train")).to_be_enabled()


class TestAsking:
    @pytest.fixture
    def page(self, visit):
        page = visit()
        instant(page)
        tab(page, "Ask")
        return page

    def ask(self, page, text):
        page.locator("#text textarea").fill(text)
        page.locator("#classify").click()

    def test_a_text_gets_its_label_and_the_reason_and_is_learned_when_wrong(self, page):
        self.ask(page, GOOD[0])
        answer = page.locator("#answer")
        expect(answer.locator("tbody tr").first).to_contain_text(GOOD[0])
        expect(answer.locator("tbody tr").first).to_contain_text("1.00")
        self.ask(page, "the train is red")
        expect(answer.locator("tbody tr").first).not_to_contain_text("1.00")
        choose_label(page, "#right-label", "trains")
        page.locator("#teach").click()
        expect(page.locator("#learned")).to_contain_text("Learned: trains.")
        expect(answer.locator(".answer")).to_contain_text("trains 100 %")
        expect(answer.locator("tbody tr").first).to_contain_text("trains")
        expect(answer.locator(".answer")).to_contain_text("trains")

    def test_enter_classifies(self, page):
        page.locator("#text textarea").fill(GOOD[0])
        page.locator("#text textarea").press("Enter")
        expect(page.locator("#answer .answer")).to_be_visible()

    def test_far_from_everything_is_unknown(self, visit, strict_address):
        page = visit(strict_address)
        instant(page)
        tab(page, "Ask")
        self.ask(page, "the red train leaves at ten")
        expect(page.locator("#answer .answer")).to_have_text("unknown")
        expect(page.locator("#answer")).to_contain_text("unlike every example")

    def test_a_class_is_added_at_once(self, page):
        page.get_by_role("button", name="Add a class").click()
        page.locator("#class-name input, #class-name textarea").fill("trains")
        page.locator("#class-texts textarea").fill("the red train\nthe train leaves at ten")
        page.locator("#add-class").click()
        expect(page.locator("#learned")).to_contain_text("Learned: trains.")
        self.ask(page, "the red train")
        expect(page.locator("#answer tbody tr").first).to_contain_text("trains")

    def test_without_a_model_there_is_one_sentence(self, visit):
        page = visit()
        tab(page, "Ask")
        self.ask(page, "hello")
        expect(page.get_by_text("There is no model yet: it takes two").last).to_be_visible()

    def test_another_spelling_of_a_class_is_asked_about(self, page):
        self.ask(page, "so lovely")
        choose_label(page, "#right-label", "Good")
        page.locator("#teach").click()
        page.locator("#learned").get_by_role("button", name="Call both good").click()
        expect(page.locator("#answer .answer")).to_contain_text("good 100 %")


class TestFiles:
    @pytest.fixture
    def page(self, visit):
        page = visit()
        instant(page)
        tab(page, "Use")
        return page

    @pytest.fixture
    def pool(self, tmp_path):
        path = tmp_path / "pool.csv"
        path.write_text("id,text\n1,=1+1\n2,so so\n3,the train is red\n")
        return path

    def test_a_file_comes_back_classified_and_harmless(self, page, pool, tmp_path):
        page.locator("#to-classify input").first.set_input_files(pool)
        page.locator("#to-classify-go").click()
        expect(page.locator("#classified-rows tbody tr")).to_have_count(3)
        path = saved(page, "#classified a[download]", tmp_path)
        rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
        assert [row["text"] for row in rows] == ["'=1+1", "so so", "the train is red"]
        assert {row["prediction"] for row in rows} <= {"good", "bad", "unknown"}

    def test_a_file_that_fails_leaves_no_answers_of_the_one_before(self, page, pool, tmp_path):
        page.locator("#to-classify input").first.set_input_files(pool)
        page.locator("#to-classify-go").click()
        expect(page.locator("#classified a[download]")).to_be_visible()
        bad = tmp_path / "bad.csv"
        bad.write_text('text,note\n"never closed,1\n')
        page.locator("#to-classify").get_by_label("Clear").click()
        expect(page.locator("#classified-rows table")).to_have_count(0)
        page.locator("#to-classify input").first.set_input_files(bad)
        expect(page.locator("#to-classify-problem")).to_contain_text("bad.csv, line 2: the quotes")
        expect(page.locator("#classified")).not_to_be_visible()

    def test_the_texts_to_label_next_are_told(self, page, pool, tmp_path):
        page.locator("#pool input").first.set_input_files(pool)
        page.locator("#pool-go").click()
        expect(page.locator("#suggestions tbody tr")).to_have_count(3)
        path = saved(page, "#to-fill a[download]", tmp_path)
        assert path.read_text().startswith("id,text,label,guess\n")

    def test_the_model_and_its_code_are_taken_away(self, page, tmp_path):
        expect(page.locator("#code")).to_contain_text('cptuning.load("model")')
        page.locator("#make-model").click()
        path = saved(page, "#taken a[download]", tmp_path)
        assert "model/cptuning.json" in zipfile.ZipFile(path).namelist()

    def test_a_download_is_refused_to_everybody_else(self, page, visit):
        page.locator("#make-examples").click()
        address = page.locator("#taken a[download]").get_attribute("href")
        assert page.request.get(address).ok
        assert visit().request.get(address).status == 403

    def test_a_model_that_was_taken_away_is_opened_again(self, page, visit, tmp_path):
        page.locator("#make-model").click()
        path = saved(page, "#taken a[download]", tmp_path)
        another = visit()
        another.get_by_role("button", name="Open a model").click()
        another.locator("#open-model input").set_input_files(path)
        expect(another.locator("#check")).to_contain_text("8 examples in 2 classes")
        tab(another, "Ask")
        another.locator("#text textarea").fill(GOOD[0])
        another.locator("#classify").click()
        expect(another.locator("#answer .answer")).to_contain_text("good")


SEVERAL = """great film and great music | praise; music
i loved the acting | praise; acting
the music was awful | complaint; music
boring plot | complaint; plot
lovely songs | praise; music
terrible songs and acting | complaint; music; acting"""


class TestSeveralLabels:
    @pytest.fixture
    def page(self, page):
        add(page, SEVERAL)
        check = page.locator("#check")
        expect(check).to_contain_text("Is complaint; music several labels, joined by ;?")
        check.get_by_role("button", name="Yes, several labels").click()
        expect(check).to_contain_text("6 examples with 5 labels")
        expect(page.locator("#several input")).to_be_checked()
        page.locator("#instant .headline", has_text="F1").wait_for()
        return page

    def test_they_are_reviewed_and_relabelled(self, page):
        tab(page, "Review")
        expect(page.locator("#accuracy")).to_contain_text(re.compile(r"\d+ % F1 on examples"))
        expect(page.locator("#confusion tbody tr").first).to_contain_text("acting")
        page.locator("#map [role=option]", has_text="boring plot").click()
        expect(page.locator("#picked")).to_have_text("boring plot")
        choose_label(page, "#picked-label", "story")
        page.locator("#relabel").click()
        expect(page.locator("#done-text")).to_have_text("Now complaint; plot; story: “boring plot”")
        page.locator("#undo").click()
        row = page.locator("#map [role=option]", has_text="boring plot")
        expect(row.locator(".one")).to_have_text(["complaint", "plot"])

    def test_each_label_is_answered_and_a_set_is_taught(self, page):
        tab(page, "Ask")
        page.locator("#text textarea").fill("lovely songs")
        page.locator("#classify").click()
        expect(page.locator("#answer .answer")).to_have_text("music; praise")
        expect(page.locator("#answer")).to_contain_text("music, because it is similar to")
        for label in ("music", "fun"):
            choose_label(page, "#right-label", label)
        page.locator("#teach").click()
        expect(page.locator("#learned")).to_have_text("Learned: fun; music.")
        expect(page.locator("#answer .answer")).to_have_text("fun; music")

    def test_one_label_per_text_is_one_click_away(self, page):
        page.locator("#several input").uncheck()
        expect(page.locator("#check")).to_contain_text("6 examples in 5 classes")
        page.locator("#undo").click()
        expect(page.locator("#check")).to_contain_text("6 examples with 5 labels")


def test_pairs_go_the_same_way(page):
    instant(page, PAIR_LINES)
    tab(page, "Review")
    expect(page.locator("#map circle")).to_have_count(4)
    tab(page, "Ask")
    page.locator("#text textarea").fill("is it red?")
    page.locator("#second textarea").fill("it is red.")
    page.locator("#classify").click()
    expect(page.locator("#answer tbody tr").first).to_contain_text("is it red? | it is red.")


def test_html_in_texts_and_labels_is_only_text(page):
    attack = "<img src=x onerror='window.attacked=1'>"
    lines = LINES.replace(GOOD[0], attack).replace("| good", "| <b onclick=x>good</b>")
    train(page, f"{lines}\n{attack} | bad")
    for name in ("Examples", "Train", "Review", "Ask"):
        tab(page, name)
        page.wait_for_timeout(200)
    page.locator("#text textarea").fill(attack)
    page.locator("#classify").click()
    expect(page.locator("#answer tbody")).to_contain_text(attack)
    choose_label(page, "#right-label", "unknown")
    page.locator("#teach").click()
    expect(page.get_by_text("No class may be called")).to_be_visible()
    assert page.locator("img[src=x], b[onclick]").count() == 0
    assert page.evaluate("window.attacked") is None


def test_two_visitors_do_not_meet(visit):
    first, second = visit(), visit()
    add(first, LINES)
    add(second, PAIR_LINES)
    first.locator("#sample").click()
    expect(first.locator("#check")).to_contain_text("104 examples")
    expect(second.locator("#check")).to_contain_text("4 examples")


def test_the_keyboard_is_enough(page):
    page.locator("#lines textarea").focus()
    page.keyboard.insert_text(LINES)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#check")).to_contain_text("8 examples")
    page.get_by_role("tab", name="Train").focus()
    page.keyboard.press("Enter")
    page.locator("#train").focus()
    page.keyboard.press("Enter")
    page.locator("#trained .good").wait_for()
    page.get_by_role("tab", name="Review").focus()
    page.keyboard.press("Enter")
    page.locator("#map [role=option][tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#picked")).to_have_text(BAD[1])
    expect(page.locator("#picked-label input")).to_be_focused()
    page.locator("#delete").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#map circle")).to_have_count(7)


def test_a_telephone_needs_no_sideways_scrolling(page):
    page.set_viewport_size({"width": 400, "height": 800})
    train(page)
    for name in TABS:
        tab(page, name)
        page.wait_for_timeout(200)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 400


def test_the_dark_theme_is_followed(visit):
    page = visit(color_scheme="dark")
    colours = "(e => [getComputedStyle(document.body).backgroundColor, getComputedStyle(e).color])"
    ground, letters = page.evaluate(f"{colours}(document.querySelector('#check .note'))")

    def brightness(colour):
        return sum(float(part) for part in re.findall(r"[\d.]+", colour)[:3])

    assert brightness(ground) < 150
    assert brightness(letters) > 600


def test_no_developer_panel_is_offered(page):
    expect(page.get_by_text("Settings")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_tab_has_a_serious_barrier(visit, scheme):
    page = visit(color_scheme=scheme)
    instant(page, f"{LINES}\n{GOOD[1]} | bad\nhated every minute of it | good")
    found = []
    for name in TABS:
        tab(page, name)
        if name == "Review":
            page.locator("#map circle").last.click(force=True)
            page.locator("#editor").wait_for()
        if name == "Ask":
            page.locator("#editor-close").click()
            page.locator("#text textarea").fill("so what")
            page.locator("#classify").click()
            page.locator("#answer .answer").wait_for()
        if name == "Spans":
            page.locator("#sample-spans").click()
            page.locator("#span-texts mark").first.wait_for()
        page.wait_for_timeout(300)  # Colours fade into each other.
        for violation in Axe().run(page).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["html"][:200] for node in violation["nodes"]]
                found.append((name, violation["id"], violation["help"], nodes))
    assert found == []
