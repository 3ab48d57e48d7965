"""Texts to mark spans in: what counts as checked, and what a tagger makes of it."""

import json
import zipfile

import pytest

import cptuning
from cptuning.app.span_views import found_view, learned_view, texts_view, types_view
from cptuning.app.span_workspace import ON_A_PAGE, SAMPLE, SpanWorkspace
from cptuning.data.sentence_files import read_sentences
from cptuning.data.tag_schemes import WordSpan
from cptuning.errors import CPTuningError

EVIL = "<script>alert(1)</script>"
CITY = WordSpan(2, 3, "city")


@pytest.fixture
def work():
    work = SpanWorkspace()
    work.add_lines("fly to Oslo\n\nsee you\n")
    work.choose_type("city")
    return work


@pytest.fixture(scope="module")
def learned(tiny):
    work = SpanWorkspace(str(tiny("bert")))
    work.add_sample()
    list(work.learn(training=False).run())
    return work


@pytest.fixture
def guessed(work):
    """A work whose tagger found a span in the first text, whatever it learned."""
    [text, _] = work.texts
    work._guesses = {text.sentence: (Found(CITY, 0.5),)}
    return work


class Found:
    def __init__(self, span, score):
        self.span, self.score = span, score


class TestMarking:
    def test_a_marked_text_is_checked_and_the_others_are_not(self, work):
        work.mark(0, 2, 2)
        assert work.texts[0].spans == (CITY,)
        assert [text.is_checked for text in work.texts] == [True, False]

    def test_a_drag_to_the_left_marks_the_same_words(self, work):
        work.mark(0, 2, 1)
        assert work.texts[0].spans == (WordSpan(1, 3, "city"),)

    def test_a_new_mark_takes_the_place_of_those_that_it_overlaps(self, work):
        work.mark(0, 0, 0)
        work.mark(0, 2, 2)
        work.choose_type("trip")
        work.mark(0, 1, 2)
        assert work.texts[0].spans == (WordSpan(0, 1, "city"), WordSpan(1, 3, "trip"))

    def test_without_its_last_mark_a_text_stays_checked(self, work):
        work.mark(0, 1, 2)
        work.unmark(0, 2)
        assert work.texts[0].spans == ()
        assert work.texts[0].is_checked

    def test_nothing_to_find_is_an_answer(self, work):
        work.accept(1)
        assert work.texts[1].is_checked

    def test_everything_can_be_undone(self, work):
        states = [work.texts]
        for act in (
            lambda: work.mark(0, 2, 2),
            lambda: work.unmark(0, 2),
            lambda: work.accept(1),
            lambda: work.delete(0),
            lambda: work.add_lines("more"),
        ):
            act()
            states.append(work.texts)
        while len(states) > 1:
            assert work.texts == states.pop()
            work.undo()
        assert work.texts == states[0]

    @pytest.mark.parametrize(
        ("act", "said"),
        [
            (lambda work: work.mark(7, 0, 0), "have changed"),
            (lambda work: work.mark(-1, 0, 0), "have changed"),
            (lambda work: work.mark(0, 0, 99), "have changed"),
            (lambda work: work.unmark(0, 0), "no mark"),
            (lambda work: work.add_lines(" \n"), "nothing to add"),
            (lambda work: work.add_lines("fly to Oslo"), "in the list already"),
            (lambda work: work.choose_type(" "), "Enter a name"),
            (lambda work: work.choose_type("x" * 99), "at most 60"),
            (lambda work: work.learn(training=False), "Mark something first"),
            (lambda work: work.found("Oslo"), "Nothing is learned yet"),
        ],
    )
    def test_what_is_impossible_is_said_and_changes_nothing(self, work, act, said):
        before = work.texts
        with pytest.raises(CPTuningError, match=said):
            act(work)
        assert work.texts == before

    def test_a_type_is_needed(self):
        work = SpanWorkspace()
        work.add_lines("fly to Oslo")
        with pytest.raises(CPTuningError, match="Name a type first"):
            work.mark(0, 0, 0)


class TestGuesses:
    def test_they_are_shown_and_not_learned_from(self, guessed):
        assert guessed.shown(0) == [CITY]
        assert len(guessed.checked) == 0

    def test_accepted_they_are_the_visitors(self, guessed):
        guessed.accept(0)
        assert guessed.texts[0].spans == (CITY,)
        assert guessed.guesses(0) == ()

    def test_a_further_mark_accepts_the_others(self, guessed):
        guessed.mark(0, 0, 0)
        assert guessed.texts[0].spans == (WordSpan(0, 1, "city"), CITY)

    def test_one_that_is_removed_leaves_the_text_checked(self, guessed):
        guessed.unmark(0, 2)
        assert guessed.texts[0].spans == ()
        assert guessed.texts[0].is_checked


class TestLearning:
    def test_what_is_not_checked_is_read(self, learned):
        open_ones = [place for place, one in enumerate(learned.texts) if not one.is_checked]
        assert len(open_ones) == sum(marked is None for _, marked in SAMPLE)
        assert {learned.texts[place].sentence for place in open_ones} == set(learned._guesses)

    def test_added_texts_are_read_at_once(self, learned):
        learned.add_lines("a boat to Rome")
        assert learned.texts[-1].sentence in learned._guesses
        learned.undo()

    def test_a_span_is_told_with_its_reasons(self, learned):
        sentence, spans = learned.found(" a table for two in Rome on Friday ")
        assert sentence.text == "a table for two in Rome on Friday"
        for span in spans:
            assert span["nearest"]
            assert span["text"] in found_view(sentence, spans, learned.types)

    def test_later_marks_are_told_of(self, learned):
        assert not learned.is_outdated
        learned.accept(len(SAMPLE) - 1)
        assert learned.is_outdated
        assert "learn again" in learned_view(learned)
        learned.undo()
        assert not learned.is_outdated

    def test_trained_it_says_so(self, tiny, monkeypatch):
        work = SpanWorkspace(str(tiny("bert")))
        work.add_sample()
        reports = [report.doing for report in work.learn(training=True).run()]
        assert work.is_trained
        assert reports[0] == "Reading the marked texts"
        assert "Trained on" in learned_view(work)

    def test_a_cancelled_one_leaves_what_there_was(self, learned):
        before = learned.tagger
        job = learned.learn(training=True)
        learned.cancel()
        with pytest.raises(CPTuningError, match="Cancelled"):
            list(job.run())
        assert learned.tagger is before


class TestFiles:
    def test_the_marked_texts_come_back(self, work, tmp_path):
        work.mark(0, 2, 2)
        path = work.marked_file(tmp_path / "marked.jsonl")
        assert json.loads(path.read_text())["spans"][0]["text"] == "Oslo"
        again = SpanWorkspace()
        again.add_file(path)
        assert again.checked == work.checked
        assert again.types == ("city",)

    def test_columns_are_read_and_plain_texts_are_not_checked(self, work, tmp_path):
        (tmp_path / "a.conll").write_text("to\tO\nCape\tB-city\nTown\tI-city\n")
        (tmp_path / "a.txt").write_text("hello there\n")
        work.add_file(tmp_path / "a.conll")
        work.add_file(tmp_path / "a.txt")
        assert work.texts[2].spans == (WordSpan(1, 3, "city"),)
        assert [text.is_checked for text in work.texts[2:]] == [True, False]

    def test_a_bad_file_is_named_without_its_folder(self, work, tmp_path):
        (tmp_path / "a.jsonl").write_text('{"text": 3}\n')
        with pytest.raises(CPTuningError, match=r"^a\.jsonl, line 1"):
            work.add_file(tmp_path / "a.jsonl")

    def test_the_tagger_can_be_taken_away(self, learned, tmp_path):
        archive = learned.model_file(tmp_path / "tagger")
        with zipfile.ZipFile(archive) as file:
            file.extractall(tmp_path / "out")
        loaded = cptuning.load(tmp_path / "out" / "tagger")
        text = "a table for two in Rome"
        assert loaded.predict_spans([text])[0] == [
            {name: value for name, value in span.items() if name != "nearest"}
            for span in learned.found(text)[1]
        ]

    def test_what_is_not_there_can_not_be_taken(self, work, tmp_path):
        with pytest.raises(CPTuningError, match="No text is checked"):
            work.marked_file(tmp_path / "marked.jsonl")
        with pytest.raises(CPTuningError, match="Nothing is learned"):
            work.model_file(tmp_path / "tagger")


class TestViews:
    def test_html_is_only_text(self, work):
        work.add_lines(f"fly to {EVIL}")
        work.choose_type(f"{EVIL}'\"")
        work.mark(2, 2, 4)
        sentence = work.texts[2].sentence
        found = sentence.marked(work.texts[2].spans[0]) | {
            "score": 0.5,
            "nearest": [{"text": EVIL, "label": EVIL, "similarity": 1.0, "sentence": EVIL}],
        }
        for html in (texts_view(work), types_view(work), found_view(sentence, [found], ())):
            assert "<script" not in html
            assert "&lt;script" in html

    def test_every_character_of_a_text_is_shown(self, work):
        text = "  “Zoë”  paid 5 € — in Łódź\t(twice!) 👩‍👩‍👧 "
        work.add_lines(text)
        shown = texts_view(work).split("<li")[3]
        place = work.texts[2].sentence.text
        assert place == text.strip()
        for word in work.texts[2].sentence.words:
            assert f">{word}</span>" in shown

    def test_a_long_list_has_pages(self):
        work = SpanWorkspace()
        work.add_lines("\n".join(f"text {n}" for n in range(ON_A_PAGE + 1)))
        assert texts_view(work).count("<li") == ON_A_PAGE
        work.turn_to(1)
        assert texts_view(work).count("<li") == 1
        work.delete(ON_A_PAGE)
        assert texts_view(work).count("<li") == ON_A_PAGE

    def test_guesses_look_different_and_tell_their_score(self, guessed):
        assert 'class="guess"' in texts_view(guessed)
        assert "50 %" in texts_view(guessed)
        guessed.accept(0)
        assert 'class="guess"' not in texts_view(guessed)


def test_the_sample_marks_what_it_says():
    work = SpanWorkspace()
    work.add_sample()
    for (text, marked), one in zip(SAMPLE, work.texts, strict=True):
        assert one.sentence.text == text
        found = [(one.sentence.marked(s)["text"], s.label) for s in one.spans]
        assert found == list(marked or ())


def test_what_was_written_is_what_the_command_reads(work, tmp_path):
    work.mark(0, 1, 2)
    work.accept(1)
    read = read_sentences(work.marked_file(tmp_path / "m.jsonl"), need_tags=True).tagged
    assert read == work.checked
