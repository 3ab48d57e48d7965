"""Pages stand alone, texts in them stay texts, and files are written whole."""

import pytest

from cptuning.errors import CPTuningError
from cptuning.reporting.page import page, table_html, text_html, write_whole


def test_a_page_has_its_styles_inside_for_light_and_dark_and_forbids_everything_else():
    html = page("Title", "<p>body</p>")
    assert "prefers-color-scheme: dark" in html
    assert "default-src 'none'" in html
    assert "width=device-width" in html
    assert "<p>body</p>" in html


def test_titles_and_texts_are_escaped():
    assert "<script>" not in page("<script>", "")
    assert text_html('<img src="x">&') == (
        '<span dir="auto">&lt;img src=&quot;x&quot;&gt;&amp;</span>'
    )


def test_a_long_text_is_cut_before_it_is_escaped():
    assert text_html("<" * 700).count("&lt;") == 600


def test_a_cell_may_bring_its_own_tag():
    html = table_html(["a", "n"], [['<td class="bar">x</td>', "3"]], numbers=1)
    assert '<tr><td class="bar">x</td><td class="number">3</td></tr>' in html


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_no_rest(tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    write_whole(target, "old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(CPTuningError, match="No space left"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
