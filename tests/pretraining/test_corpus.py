"""Raw text to training text."""

import gzip
import json
import lzma

import pytest

from pretraining.corpus import (
    Copies,
    TestSentences,
    clean,
    is_prose,
    prepare,
    prepared,
    read_documents,
    runs,
    test_sentences,
    word_codes,
)

# Neither a class of tests nor a test, although pytest would collect them by their names.
TestSentences.__test__ = False
test_sentences.__test__ = False

LONG = "The committee met on Monday to discuss the new railway line between the two cities"
NOTHING = TestSentences({})
_SYLLABLES = ("bo", "ka", "mi", "su", "ra", "le", "to")
_WORDS = [a + b + c for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES]


def test_markup_addresses_and_control_characters_are_removed():
    assert clean("\ufeffA<br /><br />fine\x00 film, see http://x.org/a?b urlLink now.") == (
        "A fine film, see now."
    )


def test_brackets_left_empty_by_a_wiki_are_removed():
    assert clean("Chen Zhili (; born 1942) of ( ) China") == "Chen Zhili (born 1942) of China"


@pytest.mark.parametrize("text", ["", "too few words", "12 34 56 78 90 12 34 56 78 90"])
def test_what_is_not_prose(text):
    assert not is_prose(text)


def test_a_run_of_words_has_the_same_number_anywhere():
    first = runs(word_codes("and so he went home"), 3)
    second = runs(word_codes("That is why... So, he WENT away"), 3)
    assert first[1] == second[3]
    assert len(set(first.tolist()) & set(second.tolist())) == 1


def test_a_text_shorter_than_a_run_has_none():
    assert len(runs(word_codes("two words"), 3)) == 0


def test_a_short_test_sentence_is_cut_only_as_a_whole():
    tests = TestSentences.of(["a truly wonderful little film"])
    assert tests.cut_from("It is a truly wonderful little film, indeed.") == ("It is , indeed.", 5)
    assert tests.cut_from("It is a truly wonderful little book.")[1] == 0


def test_eight_words_in_a_row_of_a_long_test_sentence_are_cut():
    tests = TestSentences.of([LONG])
    text, cut = tests.cut_from("We read: the committee met on Monday to discuss the old road.")
    assert (text, cut) == ("We read: old road.", 8)


def test_a_sentence_of_four_words_is_not_a_leak():
    assert TestSentences.of(["a very good film"]).cut_from("a very good film") == (
        "a very good film",
        0,
    )


def test_letters_whose_lower_case_is_longer_do_not_shift_the_cut():
    tests = TestSentences.of(["one two three four five"])
    text, _ = tests.cut_from("İİİ one two three four five end")
    assert "three" not in text
    assert text.endswith("end")


def test_copies_and_near_copies_are_recognised():
    copies = Copies()
    texts = " ".join(_WORDS), " ".join(_WORDS[:-9]) + " and a new end", " ".join(_WORDS[::-1])
    one, near, other = (prepared(text, NOTHING) for text in texts)
    assert [copies.has(d.fingerprint) for d in (one, near, other)] == [False, True, False]


def test_the_whole_preparation(tmp_path):
    raw, data = tmp_path / "raw", tmp_path / "data"
    (data / "SET").mkdir(parents=True)
    raw.mkdir()
    leak = "nobody ever expected such a quiet and gentle ending here"
    with gzip.open(data / "SET/test.jsonl.gz", "wt") as file:
        file.write(json.dumps({"text_a": leak, "text_b": "short", "label": "x"}) + "\n")
    lines = [f"Document {w} is about {w} and about nothing else but {w}, again." for w in _WORDS]
    (raw / "news.txt").write_text("\n".join([*lines, lines[0], f"He said {leak} to me.", "x"]))
    report = prepare(raw, tmp_path / "out", test_sentences(data), workers=1)
    count = report["sources"]["news"]
    assert count["read"] == len(lines) + 3
    assert count["copy"] == 1
    assert count["words cut as test text"] == 10
    kept = list(read_documents(tmp_path / "out/train-00.txt.xz"))
    held = (tmp_path / "out/heldout.jsonl").read_text().splitlines()
    assert len(kept) == count["kept"]
    assert len(held) == count["held out"] > 0
    assert len(kept) + len(held) == len(lines)
    assert not {json.loads(line)["text"] + "\n" for line in held} & set(kept)
    assert not any(leak in text for text in kept)
    assert json.loads((tmp_path / "out/report.json").read_text())["shards"] == 1


def test_documents_are_read_from_every_kind_of_file(tmp_path):
    import zstandard

    lines = "one\ntwo\n"
    (tmp_path / "a.txt").write_text(lines)
    (tmp_path / "a.txt.zst").write_bytes(zstandard.compress(lines.encode()))
    with lzma.open(tmp_path / "a.txt.xz", "wt") as file:
        file.write(lines)
    for path in sorted(tmp_path.iterdir()):
        assert list(read_documents(path)) == ["one\n", "two\n"], path


def test_a_folder_without_test_sets_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="no NAME/test"):
        test_sentences(tmp_path)


def test_short_documents_are_kept_where_they_are_asked_for_and_copies_of_them_go():
    assert prepared("Where is it?", NOTHING).dropped == "no prose"
    first, again = (
        prepared(text, NOTHING, fewest_words=2) for text in ("Where is it?", "where is it")
    )
    assert first.text == "Where is it?"
    copies = Copies()
    assert not copies.has(first.fingerprint)
    assert copies.has(again.fingerprint)


def test_test_sentences_of_tagging_sets_are_their_words(tmp_path):
    (tmp_path / "NER").mkdir()
    with gzip.open(tmp_path / "NER/test.jsonl.gz", "wt") as file:
        file.write(json.dumps({"tokens": ["Ada", "Lovelace", "lived", "in", "London"]}) + "\n")
    text, cut = test_sentences(tmp_path).cut_from("Yes: Ada Lovelace lived in London, they say.")
    assert (text, cut) == ("Yes: , they say.", 5)
