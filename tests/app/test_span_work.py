"""Finding spans without a browser: marked texts, answers, corrections, files."""

import json

import pytest

from cptuning.app import downloads
from cptuning.app.marked_texts import MarkedText, Span, parse_marked, sample_texts
from cptuning.app.session import AppSettings, Session
from cptuning.app.span_views import answer_view, state_view, texts_view
from cptuning.app.span_work import SpanWork
from cptuning.errors import CPTuningError

LINES = """fly me to [Oslo](city)
a table in [Rome](city) on [Monday](day)
is it warm in [Lima](city)
hello there"""
EVIL = MarkedText.parse("<i>[<b>x](<u>)")


@pytest.fixture(scope="module")
def settings(tiny):
    return AppSettings(str(tiny("bert")), {"steps": 2})


@pytest.fixture
def session(settings):
    made = Session(settings)
    made.add_marked(parse_marked(LINES))
    yield made
    made.close()


class TestMarks:
    def test_marks_are_read_and_written_again(self):
        for line in (*LINES.splitlines(), "[a](b)[c](d)", "[no mark] (here)"):
            assert MarkedText.parse(line).written == line
        assert MarkedText.parse("[a b](c) d").spans == (Span(0, 3, "c"),)

    @pytest.mark.parametrize("content", ["", "  \n "])
    def test_nothing_is_refused(self, content):
        with pytest.raises(CPTuningError, match="nothing to add"):
            parse_marked(content)

    def test_a_mark_without_a_word_is_refused_by_the_text(self):
        with pytest.raises(CPTuningError, match="the text 'fly to  ': the span"):
            parse_marked("ok\nfly to [ ](city) ")

    def test_the_sample_has_types_that_occur_often_enough(self):
        assert min(SpanWork(tuple(sample_texts())).counts.values()) > 10


class TestAnswers:
    def test_two_marked_texts_are_answered_without_training(self, session):
        assert session.needs_span_reading
        session.read_spans()
        assert not session.spans.is_trained
        assert session.spans.scores.overall.support == 4
        [*spans] = session.spans.found("a table in Rome on Monday")
        assert {span["label"] for span in spans} <= {"city", "day"}
        assert all(span["nearest"] for span in spans)

    def test_what_is_missing_is_told(self, settings):
        session = Session(settings)
        with pytest.raises(CPTuningError, match="no model yet"):
            session.spans.found("hello")
        with pytest.raises(CPTuningError, match="two texts at least"):
            session.train_spans()

    def test_the_same_text_takes_new_marks_and_all_is_undone(self, session):
        before = session.spans.texts
        session.add_marked(parse_marked("hello [there](place)"))
        assert len(session.spans.texts) == 4
        assert session.spans.counts == {"city": 3, "day": 1, "place": 1}
        session.delete_marked("hello there")
        session.clear_marked()
        assert session.spans.texts == ()
        for _ in range(3):
            session.undo()
        assert session.spans.texts == before
        assert session.needs_span_reading

    def test_a_trained_model_learns_and_forgets_at_once(self, session):
        reports = session.train_spans().run()
        next(reports)
        session.add_marked(parse_marked("two plates of [soup](dish)"))
        list(reports)
        work = session.spans
        assert work.is_trained
        assert work.changes == 1
        assert [s.text for s in work.tagger.predictor_.examples.sentences] == [
            one.text for one in work.texts
        ]
        assert "dish" in work.tagger.predictor_.types
        session.delete_marked("two plates of soup")
        assert len(session.spans.tagger.predictor_.examples) == 4
        assert len(work.tagger.predictor_.examples) == 5  # Undoing brings it back.
        session.undo()
        assert session.spans is work

    def test_the_work_on_labels_and_on_spans_is_apart(self, session):
        session.clear()
        assert len(session.spans.texts) == 4


class TestFiles:
    def test_a_table_gets_a_column_for_each_type(self, session, tmp_path):
        session.read_spans()
        path = tmp_path / "mine.csv"
        path.write_text("id,text\n1,fly me to Oslo\n2,hello there\n")
        target, rows = downloads.spans_file(session, path)
        assert target.name == "mine-spans.csv"
        assert list(rows[0]) == ["id", "text", "city", "day"]

    def test_the_model_is_opened_again(self, session, settings):
        session.read_spans()
        archive = downloads.tagger_file(session)
        another = Session(settings)
        another.open_model(archive)
        assert another.spans.texts == session.spans.texts
        assert another.spans.scores is None
        text = ["fly me to Oslo on Monday"]
        expected, found = (s.spans.tagger.predict_spans(text) for s in (session, another))
        assert [one["text"] for one in found[0]] == [one["text"] for one in expected[0]]
        another.close()

    def test_the_texts_are_written_as_the_command_reads_them(self, session):
        rows = [json.loads(line) for line in downloads.marked_file(session).open()]
        assert rows[0] == {
            "text": "fly me to Oslo",
            "spans": [{"start": 10, "end": 14, "label": "city"}],
        }


def test_what_visitors_wrote_is_never_html(session):
    session.add_marked([EVIL])
    found = [{"text": "<b>", "label": "<u>", "score": 0.5, "nearest": [{"text": "<i>"}]}]
    for html in (
        state_view(session),
        texts_view(session.spans),
        answer_view(EVIL, found, ["<u>"]),
    ):
        assert "<b>x" not in html
        assert "<u>" not in html
        assert "<i>" not in html
