"""Pages stand alone, and texts in them stay texts."""

from cptuning.reporting.html import html_page, table_html, text_html


def test_a_page_has_its_styles_inside_for_light_and_dark_and_forbids_everything_else():
    html = html_page("Title", "<p>body</p>")
    assert "prefers-color-scheme: dark" in html
    assert "default-src 'none'" in html
    assert "width=device-width" in html
    assert "<p>body</p>" in html


def test_titles_and_texts_are_escaped():
    assert "<script>" not in html_page("<script>", "")
    assert text_html('<img src="x">&') == (
        '<span dir="auto">&lt;img src=&quot;x&quot;&gt;&amp;</span>'
    )


def test_a_long_text_is_cut_before_it_is_escaped():
    assert text_html("<" * 700).count("&lt;") == 600


def test_a_cell_may_bring_its_own_tag():
    html = table_html(["a", "n"], [['<td class="bar">x</td>', "3"]], numbers=1)
    assert '<tr><td class="bar">x</td><td class="number">3</td></tr>' in html
