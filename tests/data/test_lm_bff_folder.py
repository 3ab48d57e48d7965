import pytest

from cptuning.data.lm_bff_folder import LMBFFFolder
from cptuning.errors import CPTuningError

# For each data set: its folder, a file as LM-BFF has it, the examples and the labels in it.
FILES = {
    "SST-2": (
        "SST-2",
        'sentence\tlabel\n"a fine day\t1\nrain \t0\n',
        ['"a fine day', "rain "],
        ["positive", "negative"],
    ),
    "MRPC": (
        "MRPC",
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
        "1\t7\t8\tone\teins\n0\t9\t10\ttwo\tdrei\n",
        [("one", "eins"), ("two", "drei")],
        ["equivalent", "not_equivalent"],
    ),
    "QQP": (
        "QQP",
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        "1\t2\t3\twho?\twho else?\t0\n4\t5\t6\tcut short\n7\t8\t9\twhen?\tat what time?\t1\n",
        [("who?", "who else?"), ("when?", "at what time?")],
        ["not_duplicate", "duplicate"],
    ),
    "QNLI": (
        "QNLI",
        "index\tquestion\tsentence\tlabel\n0\twho?\tshe\tentailment\n1\twho?\tthen\tnot_entailment\n",
        [("who?", "she"), ("who?", "then")],
        ["entailment", "not_entailment"],
    ),
    "RTE": (
        "RTE",
        "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tnot_entailment\n1\tc\td\tentailment",
        [("a", "b"), ("c", "d")],
        ["not_entailment", "entailment"],
    ),
    "MR": ("mr", '0,"dull, and long"\n1,lively\n', ["dull, and long", "lively"], None),
    "CR": ("cr", "0,breaks\n1,lasts\n", ["breaks", "lasts"], None),
    "SUBJ": ("subj", "1,a man walks\n0,lovely\n", ["a man walks", "lovely"], None),
    "TREC": ("trec", "5,how many ?\n2,what is UN ?\n", ["how many ?", "what is UN ?"], None),
}
CSV_LABELS = {
    "MR": ["negative", "positive"],
    "CR": ["negative", "positive"],
    "SUBJ": ["objective", "subjective"],
    "TREC": ["number", "abbreviation"],
}


def put(root, name, place, content=None):
    folder, ready, _, labels = FILES[name]
    path = root / place.format(folder) / f"train.{'tsv' if labels else 'csv'}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ready if content is None else content, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_read_with_our_names_for_the_labels(tmp_path, name):
    _, _, examples, labels = FILES[name]
    put(tmp_path, name, "original/{}")
    pool = LMBFFFolder.find(tmp_path, name).pool()
    assert list(pool.examples) == examples
    assert pool.labels == (labels or CSV_LABELS[name])


@pytest.mark.parametrize("name", ["RTE", "MR"])
def test_splits_come_with_their_test_file(tmp_path, name):
    train = put(tmp_path, name, "k-shot/{}/16-13")
    for part in ("dev", "test"):
        lines = train.read_text().splitlines(keepends=True)
        train.with_stem(part).write_text("".join(lines[:-1] if part == "dev" else lines))
    source = LMBFFFolder.find(tmp_path, name)
    split = source.k_shot(16, 13)
    assert [len(part.labels) for part in split] == [2, 1]
    assert len(source.test().labels) == 2
    assert source.k_shot(16, 21) is None


@pytest.mark.parametrize(("name", "file"), [("RTE", "dev.tsv"), ("MR", "test.csv")])
def test_without_splits_the_original_test_file_serves(tmp_path, name, file):
    path = put(tmp_path, name, "original/{}")
    source = LMBFFFolder.find(tmp_path, name)
    with pytest.raises(CPTuningError, match="in any split"):
        source.test()
    path.rename(path.with_name(file))
    assert len(source.test().labels) == 2


def test_a_folder_of_another_kind_is_not_mistaken(tmp_path):
    assert LMBFFFolder.find(tmp_path, "RTE") is None
    assert LMBFFFolder.find(tmp_path, "CLINC150") is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("RTE", "a\tb\n", "line 1: the header has no sentence1, sentence2, label"),
        ("SST-2", "sentence\tlabel\na\t7\n", "label '7' of example 1 is not one of 0, 1"),
        ("MR", "0,a\n1\n", "example 2 has 1 cells"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, content, message):
    put(tmp_path, name, "original/{}", content)
    with pytest.raises(CPTuningError, match=message):
        LMBFFFolder.find(tmp_path, name).pool()


def test_a_missing_training_file_is_named(tmp_path):
    put(tmp_path, "RTE", "k-shot/{}/16-13")
    with pytest.raises(CPTuningError, match=r"train\.tsv does not exist"):
        LMBFFFolder.find(tmp_path, "RTE").pool()
