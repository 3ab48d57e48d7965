"""The table of what can be wrong, and what is said of it: for the test, and for docs/errors.md."""

import gzip
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIT = "fit @films --output @/out"
TRAIN = "fit @/{name} --output @/out"


@dataclass(frozen=True)
class Case:
    """One thing that is wrong: how it is done, and what must be in the sentence about it."""

    when: str
    says: str
    command: str = ""
    """Words of a command line; ``@films`` is one of the places below, ``@/x`` a new one."""
    python: str = ""
    """An expression."""
    request: tuple[str, Any] | None = None
    """The path of an HTTP request, and its body."""
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 422
    files: dict[str, Any] = field(default_factory=dict)
    """What the new places hold: text, bytes, or a function that makes them."""
    change: Callable[[Path], Any] | None = None
    """What is done to a model folder before."""
    stdin: bytes | None = None
    environment: dict[str, str] = field(default_factory=dict)


def command(when: str, words: str, says: str, **more: Any) -> Case:
    return Case(when, says, command=words, **more)


def file(when: str, name: str, content: Any, says: str, options: str = "", **more: Any) -> Case:
    words = f"{TRAIN.format(name=name)} {options}"
    return Case(when, says, command=words, files={name: content}, **more)


def option(words: str, says: str, when: str = "") -> Case:
    return Case(when or f"`{words}`", says, command=f"{FIT} {words}")


def python(code: str, says: str, when: str = "") -> Case:
    return Case(when or f"`{code}`", says, python=code)


def folder(
    when: str,
    change: Callable[[Path], Any],
    says: str,
    words: str = "predict @/model @pairs",
    **more: Any,
) -> Case:
    return Case(when, says, command=words, change=change, **more)


def http(when: str, body: Any, says: str, status: int = 422, path: str = "/predict") -> Case:
    return Case(when, says, request=(path, body), status=status)


def facts(*keys: Any) -> Callable[[Path], None]:
    """A change of one value of cptuning.json, at the end of a path of keys."""
    return in_json("cptuning.json", *keys)


def in_json(name: str, *keys: Any) -> Callable[[Path], None]:
    *path, last, value = keys

    def change(model: Path) -> None:
        stored = json.loads((model / name).read_text("utf-8"))
        place = stored
        for key in path:
            place = place[key]
        place[last] = value
        (model / name).write_text(json.dumps(stored), "utf-8")

    return change


def without(*keys: str) -> Callable[[Path], None]:
    *path, last = keys

    def change(model: Path) -> None:
        stored = json.loads((model / "cptuning.json").read_text("utf-8"))
        place = stored
        for key in path:
            place = place[key]
        del place[last]
        (model / "cptuning.json").write_text(json.dumps(stored), "utf-8")

    return change


def holding(name: str, content: str | bytes) -> Callable[[Path], None]:
    data = content.encode() if isinstance(content, str) else content
    return lambda model: (model / name).write_bytes(data)


def lacking(name: str) -> Callable[[Path], None]:
    def change(model: Path) -> None:
        place = model / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()

    return change


def cut(name: str) -> Callable[[Path], None]:
    def change(model: Path) -> None:
        data = (model / name).read_bytes()
        (model / name).write_bytes(data[: len(data) // 2])

    return change


def tensors(
    name: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Callable[[Path], None]:
    def changed(model: Path) -> None:
        from safetensors.numpy import load_file, save_file

        save_file(change(load_file(model / name)), model / name)

    return changed


def many_files(model: Path) -> None:
    for number in range(1001):
        (model / f"{number}.txt").touch()


def linked(name: str) -> Callable[[Path], None]:
    def change(model: Path) -> None:
        (model / name).rename(model.parent / "elsewhere")
        (model / name).symlink_to(model.parent / "elsewhere")

    return change


def jsonl(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def parquet(columns: dict[str, list[Any]]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(columns), path)

    return make


def parquet_twice(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pa.array(["a"])
    pq.write_table(pa.Table.from_arrays([column, column], names=["text", "text"]), path)


def half_parquet(path: Path) -> None:
    parquet({"text": ["a"] * 99, "label": ["x"] * 99})(path)
    path.write_bytes(path.read_bytes()[:200])


def workbook(*rows: list[Any]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        import openpyxl

        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)

    return make


GOOD = [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]
SURROGATE = "\ud800"
CSV = "text,label\na,x\nb,y\n"
SETS = "text,label\na,x;y\nb,x\n"
FLAGS = "text,x,y\na,1,1\nb,1,0\n"
LISTS = jsonl({"text": "a", "label": ["x", "y"]}, {"text": "b", "label": ["x"]})
LONG = "x" * 300
NOISE = random.Random(0).randbytes(9999)

SECTIONS: dict[str, list[Case]] = {
    "Files": [
        file("an empty file", "empty.csv", "", "is empty: it needs a header and rows."),
        file("a header and nothing else", "header.csv", "text,label\n", "has a header but no rows: the first line names the columns, and the examples follow it."),
        command("a file that does not exist", "fit @/new.csv --output @/out", "does not exist: check the name and the folder."),
        command("a folder in place of a file", "fit @foreign --output @/out", "is a folder: name a file in it."),
        file("another kind of file", "notes.docx", CSV, "unknown kind of file, use .csv, .tsv or .jsonl (or these with .gz), .parquet or .xlsx."),
        file("a JSON file that is not JSONL", "rows.json", json.dumps(GOOD), "unknown kind of file, use .csv, .tsv or .jsonl (or these with .gz), .parquet or .xlsx."),
        file("a name of 300 characters", f"{LONG}.csv", None, "can't be used: File name too long."),
        file("a link that leads nowhere", "t.csv", lambda p: p.symlink_to("no"), "does not exist: check the name and the folder."),
        file("a link to itself", "t.csv", lambda p: p.symlink_to(p.name), "does not exist: check the name and the folder."),
        file("a named pipe", "pipe.csv", os.mkfifo, "is a pipe or a device, not a file: pass a stream as standard input, with -."),
        file("a device that never ends", "zero.csv", lambda p: p.symlink_to("/dev/zero"), "is a pipe or a device, not a file: pass a stream as standard input, with -."),
        file("a byte that is neither UTF-8 nor Windows-1252", "t.csv", b"text,label\ncaf\x81,a\n", "line 2 is not UTF-8 text: save it as UTF-8."),
        file("JSONL that is not UTF-8", "t.jsonl", b'{"text": "caf\xe9"}\n', "line 1 is not UTF-8 text: save it as UTF-8."),
        file("a NUL byte", "t.csv", "text,label\na\0,x\n", "line 2 contains a NUL byte: save the file as UTF-8 text."),
        file("UTF-16 that is cut off", "t.csv", CSV.encode("utf-16") + b"a", "is not valid UTF-16 text: save it as UTF-8."),
        file("UTF-16 without its mark", "t.csv", CSV.encode("utf-16-le"), "line 1 contains a NUL byte: save the file as UTF-8 text."),
        file("a quote that is never closed", "t.csv", 'text,label\n"a,x\nb,y\n', "line 2: the quotes do not match"),
        file("text behind a closing quote", "t.csv", 'text,label\n"a"b,x\n', "line 2: the quotes do not match"),
        file("a row with too few cells", "t.csv", "text,label\na,x\nb\n", "line 3 has 1 cells but the header has 2: put texts that contain the separator in double quotes."),
        file("a row with too many cells", "t.csv", "text,label\na,x\nb, c,y\n", "line 3 has 3 cells but the header has 2: put texts that contain the separator in double quotes."),
        file("a column twice", "t.csv", "text,text\na,x\n", "has two columns with the same name, 'text': rename one."),
        file("broken JSON", "t.jsonl", '{"text": "a", "label": "x"}\n{"text": \n', "line 2 is not valid JSON"),
        file("a line of JSONL that is not an object", "t.jsonl", '["a", "x"]\n', "line 1 is not a JSON object like {\"text\": \"…\"}."),
        file("a key twice", "t.jsonl", '{"text": "a", "text": "b"}\n', "line 1 is not valid JSON (a key appears twice)."),
        file("JSON nested a hundred thousand deep", "t.jsonl", "[" * 100_000, "line 1 is not valid JSON"),
        file("an empty JSONL file", "t.jsonl", "\n\n", "is empty: it needs one JSON object per line."),
        file("a .gz that is not compressed", "t.csv.gz", CSV, "is not a valid gzip file"),
        file("a .gz that is cut off", "t.csv.gz", gzip.compress(NOISE)[:999], "is not a valid gzip file"),
        file("a .gz with damage inside", "t.csv.gz", gzip.compress(CSV.encode())[:-9] + bytes(9), "is not a valid gzip file"),
        file("a line that is too long", "t.csv", CSV + "x" * 200, "line 4 is longer than 100 bytes: check the quotes and the ends of lines, or set CPTUNING_LONGEST_LINE to more.", environment={"CPTUNING_LONGEST_LINE": "100"}),
        file("such a line in JSONL", "t.jsonl", jsonl({"text": "x" * 200}), "line 1 is longer than 100 bytes: check the quotes and the ends of lines, or set CPTUNING_LONGEST_LINE to more.", environment={"CPTUNING_LONGEST_LINE": "100"}),
        file("a cell of too many lines", "t.csv", 'text\n"' + "a\n" * 200, "line 2: a cell is longer than 100 bytes: check the quotes and the ends of lines, or set CPTUNING_LONGEST_LINE to more.", environment={"CPTUNING_LONGEST_LINE": "100"}),
        file("a file that is too large", "t.csv", CSV + "x" * 200, "holds more than 100 bytes when it is decompressed: split it, or set CPTUNING_LARGEST_FILE to more.", environment={"CPTUNING_LARGEST_FILE": "100"}),
        file("a small archive of a large file", "t.jsonl.gz", gzip.compress(jsonl({"text": "x" * 99, "label": "y"}).encode() * 99), "holds more than 5000 bytes when it is decompressed: split it, or set CPTUNING_LARGEST_FILE to more.", environment={"CPTUNING_LARGEST_FILE": "5000"}),
        file("a Parquet file that is too large", "t.parquet", parquet({"text": ["a"] * 99, "label": ["x"] * 99}), "holds more than 100 bytes when it is decompressed: split it, or set CPTUNING_LARGEST_FILE to more.", environment={"CPTUNING_LARGEST_FILE": "100"}),
        file("a workbook that is too large", "t.xlsx", workbook(["text", "label"], ["a", "x"]), "holds more than 100 bytes when it is decompressed: split it, or set CPTUNING_LARGEST_FILE to more.", environment={"CPTUNING_LARGEST_FILE": "100"}),
        file("too many rows", "t.csv", CSV + "c,x\n", "has more than 2 rows: give fewer, or set CPTUNING_MOST_EXAMPLES to more.", environment={"CPTUNING_MOST_EXAMPLES": "2"}),
        file("a Parquet file that is not one", "t.parquet", CSV, "is not a valid Parquet file"),
        file("a Parquet file that is cut off", "t.parquet", half_parquet, "is not a valid Parquet file"),
        file("a Parquet file with a column twice", "t.parquet", parquet_twice, "has two columns with the same name, 'text': rename one."),
        file("a Parquet file without rows", "t.parquet", parquet({"text": [], "label": []}), "has a header but no rows: the first line names the columns, and the examples follow it."),
        file("an XLSX file that is not one", "t.xlsx", CSV, "is not a valid XLSX file"),
        file("an empty sheet", "t.xlsx", workbook(), "is empty: its first sheet needs a header and rows."),
        file("a sheet with too many cells in a row", "t.xlsx", workbook(["text", "label"], ["a", "x", "?!"]), "row 2 has 3 cells but the header has 2."),
        command("nothing on standard input", "fit - --output @/out", "standard input is empty: it needs a header and rows.", stdin=b""),
        command("broken JSON on standard input", "fit - --output @/out", "standard input, line 1 is not valid JSON", stdin=b'{"text": \n'),
    ],
    "Texts and labels in files": [
        file("no column with texts", "t.csv", "id,left,label\n1,a,x\n2,b,y\n", "has no column 'text' (its columns are 'id', 'left', 'label'): name the right one with --text."),
        file("no column with labels", "t.csv", "text,id,by\na,1,x\nb,2,y\n", "has no column 'label' (its columns are 'text', 'id', 'by'): name the right one with --label."),
        file("both `text` and `text_a`", "t.csv", "text,text_a,label\na,b,x\n", "There are both a column 'text' and a column 'text_a': keep one."),
        command("a text column that does not exist", f"{FIT} --text body", "has no column 'body' (its columns are 'text', 'label'): name the right one with --text."),
        command("a second text column that does not exist", f"{FIT} --text-b body", "has no column 'body' (its columns are 'text', 'label'): name the right one with --text-b."),
        command("a label column that does not exist", f"{FIT} --label topic", "has no column 'topic' (its columns are 'text', 'label'): name the right one with --label."),
        file("a row without a label", "t.csv", "text,label\na,x\nb,\n", "line 3 has no label: give it one or remove the row."),
        file("a label of blanks", "t.csv", "text,label\na,x\nb,  \n", "line 3 has no label: give it one or remove the row."),
        file("a label that is null", "t.jsonl", jsonl(GOOD[0], {"text": "b", "label": None}), "line 2 has no label: give it one or remove the row."),
        file("a label that is NaN", "t.jsonl", jsonl(GOOD[0], {"text": "b", "label": float("nan")}), "line 2 has no label: give it one or remove the row."),
        file("a label that is an object", "t.jsonl", jsonl(GOOD[0], {"text": "b", "label": {}}), "line 2: the label is of type dict, use a text or a number."),
        file("half a surrogate pair in a label", "t.jsonl", jsonl(GOOD[0], {"text": "b", "label": SURROGATE}), "line 2: the label contains half of a surrogate pair, which is not valid."),
        file("labels 1 and true", "t.jsonl", jsonl({"text": "a", "label": 1}, {"text": "b", "label": True}), "The labels 1 and True are equal in Python but of different types: use one type for all labels."),
        file("a text that is null", "t.jsonl", jsonl(GOOD[0], {"text": None, "label": "y"}), "line 2: the text in column 'text' is missing (None or NaN)."),
        file("a text that is a number", "t.jsonl", jsonl(GOOD[0], {"text": 3, "label": "y"}), "line 2: the text in column 'text' is a number (int), not a text."),
        file("a text that is a list", "t.jsonl", jsonl(GOOD[0], {"text": ["b"], "label": "y"}), "line 2: the text in column 'text' is of type list, not a text."),
        file("half a surrogate pair in a text", "t.jsonl", jsonl(GOOD[0], {"text": SURROGATE, "label": "y"}), "line 2: the text in column 'text' contains half of a surrogate pair, which is not valid."),
        file("a later row without the text", "t.jsonl", jsonl(GOOD[0], {"label": "y"}), "line 2 has no column 'text' (its columns are 'label'): name the right one with --text."),
        file("a pair among single texts", "t.jsonl", jsonl(GOOD[0], {"text_a": "b", "text_b": "c", "label": "y"}), "line 2 has text_a and text_b, the rows before it text: give all texts or all pairs of texts."),
        file("a Parquet text that is a number", "t.parquet", parquet({"text": [1, 2], "label": ["x", "y"]}), "row 1: the text in column 'text' is a number (int), not a text."),
        file("a Parquet label that is missing", "t.parquet", parquet({"text": ["a", "b"], "label": ["x", None]}), "row 2 has no label: give it one or remove the row."),
        file("examples of one class", "t.csv", "text,label\na,x\nb,x\n", "All 2 examples are labelled 'x': a classifier needs examples of at least two classes."),
        file("too many classes", "t.csv", CSV + "c,z\n", "There are 3 classes, and at most 2 may be: check the labels, or set CPTUNING_MOST_CLASSES to more.", environment={"CPTUNING_MOST_CLASSES": "2"}),
        file("a single example", "t.csv", "text,label\na,x\n", "All 1 examples are labelled 'x': a classifier needs examples of at least two classes."),
        command("a dev file that does not exist", f"{FIT} --dev @/new.csv", "does not exist: check the name and the folder."),
        command("a dev label that training does not have", f"{FIT} --dev @/dev.csv", "add examples of it there or remove the row.", files={"dev.csv": "text,label\na,good\nb,odd\n"}),
        command("dev pairs for single texts", f"{FIT} --dev @pairs", "has pairs of texts but the model takes single texts: name the one column with --text."),
        command("a dev file without labels", f"{FIT} --dev @/dev.csv", "has no column 'label' (its columns are 'text', 'id', 'by'): name the right one with --label.", files={"dev.csv": "text,id,by\na,1,x\nb,2,y\n"}),
        command("unlabelled pairs for single texts", f"{FIT} --unlabeled @pairs", "has pairs of texts but the model takes single texts: name the one column with --text."),
        command("an unlabelled file that does not exist", f"{FIT} --unlabeled @/new.csv", "does not exist: check the name and the folder."),
        command("a weight column that does not exist", f"{FIT} --weight heft", "has no column 'heft': see --weight."),
        file("a weight that is a word", "t.csv", "text,label,w\na,x,1\nb,y,much\n", "line 3: the weight 'much' is not a number.", "--weight w"),
        file("a weight below zero", "t.csv", "text,label,w\na,x,1\nb,y,-1\n", "sample_weight is -1.0 in row 2: give numbers of at least 0.", "--weight w"),
        file("a weight that is NaN", "t.csv", "text,label,w\na,x,1\nb,y,nan\n", "sample_weight is nan in row 2: give numbers of at least 0.", "--weight w"),
        file("weights that are all zero", "t.csv", "text,label,w\na,x,0\nb,y,0\n", "All weights of examples are 0: give at least one a positive weight.", "--weight w"),
    ],
    "Several labels per text": [
        file("an empty separator", "t.csv", SETS, "--label-separator is empty: give what the labels are joined by, such as ';'.", "--label-separator ''"),
        file("a separator where each text has one label", "t.csv", CSV, "each text has one label, none is joined by ';': leave --label-separator out, or give what joins them.", "--label-separator ';'"),
        file("a separator and label columns", "t.csv", SETS, "--label-separator is for labels joined in one column, and --label-columns for one column per label: give one of them.", "--label-separator ';' --label-columns x,y"),
        file("a label column and label columns", "t.csv", SETS, "--label is for one column of labels, and --label-columns for one column per label: give one of them.", "--label label --label-columns x,y"),
        file("a label column that is named twice", "t.csv", FLAGS, "--label-columns is 'x,x': name each label's column once, separated by commas.", "--label-columns x,x"),
        file("a label column that is not there", "t.csv", FLAGS, "has no column 'z' (its columns are 'text', 'x', 'y'): name the right one with --label-columns.", "--label-columns x,z"),
        file("a label column with values other than 0 and 1", "t.csv", FLAGS + "c,2,0\n", "line 4: the label column 'x' has '2', write 1 for a text that has the label and 0 for one that does not.", "--label-columns x,y"),
        file("lists of labels, of which none has any", "t.jsonl", jsonl({"text": "a", "label": []}), "No text has a label: give at least one text a label."),
        file("a list of labels with a number in it", "t.jsonl", jsonl({"text": "a", "label": ["x", 3]}), "line 1: the label 3 is of type int, those before it are of type str: use one type for all labels."),
        file("a list of labels with an empty one", "t.jsonl", jsonl({"text": "a", "label": ["x", " "]}), "line 1: a label of the list is empty, use texts or numbers."),
        file("a list of lists of labels", "t.jsonl", jsonl({"text": "a", "label": [["x"]]}), "line 1: a label of the list is of type list, use texts or numbers."),
        file("half a surrogate pair in a list of labels", "t.jsonl", jsonl({"text": "a", "label": [SURROGATE]}), "line 1: a label of the list contains half of a surrogate pair, which is not valid, use texts or numbers."),
        file("a single label among lists", "t.jsonl", jsonl({"text": "a", "label": ["x"]}, GOOD[1]), "line 2: the label is a single label, those before it are lists: give each text a list of labels, or each text one label."),
        file("a list among single labels", "t.jsonl", jsonl(GOOD[0], {"text": "b", "label": ["y"]}), "line 2: the label is a list, those before it are single labels: give each text a list of labels, or each text one label."),
        file("lists of labels for a rival", "t.jsonl", LISTS, "The method fine-tuning answers one label per text, but label sets were given: use method cp-tuning.", "--method fine-tuning"),
        file("class weights for lists of labels", "t.jsonl", LISTS, "class_weight is for one label per text: weight examples with sample_weight instead.", "--class-weight balanced"),
        file("a prior for lists of labels", "t.jsonl", LISTS, "class_prior is for one label per text: leave it out.", "--class-prior x=0.5,y=0.5"),
        file("single labels in a dev file beside lists", "t.jsonl", LISTS, "has label sets: tell how the file holds them with --label-separator or --label-columns.", "--dev @films"),
        command("lists of labels in a dev file beside single labels", f"{FIT} --dev @/dev.jsonl", "has one label per text: give each text one label.", files={"dev.jsonl": LISTS}),
        command("lists of labels in a dev file with an unknown one", "fit @/t.jsonl --output @/out --dev @/dev.jsonl", "line 1: the label 'odd' does not occur in", files={"t.jsonl": LISTS, "dev.jsonl": jsonl({"text": "a", "label": ["odd"]})}),
        command("lists of labels for a model of classes", "add @model @/t.jsonl", "has label sets, but the model has one label per text: give each text one label.", files={"t.jsonl": LISTS}),
        command("a separator for a model of classes", "predict @model @films --label-separator ';'", "The model gives one label per text: leave --label-separator out."),
    ],
    "Options of fit": [
        option("--method magic", "There is no method 'magic': use one of"),
        option("--preset magic", "There is no preset 'magic': choose one of"),
        option("--backbone no/such", "The backbone 'no/such' is neither a folder here nor could it be fetched from the hub: check its name and the network, download it once and give its folder, or use one of"),
        option("--backbone @foreign", "holds no model (it has no config.json): name a folder written by save_pretrained.", "a backbone that is some other folder"),
        option("--backbone ../../etc", "The backbone '../../etc' is neither a folder here nor could it be fetched from the hub: check its name and the network, download it once and give its folder, or use one of"),
        option("--device abacus", "The device 'abacus' is not available: use 'auto' or 'cpu'."),
        option("--device cuda:99", "The device 'cuda:99' is not available: use 'auto' or 'cpu'."),
        option("--device meta", "The device 'meta' is not available: use 'auto' or 'cpu'."),
        option("--validation magic", "validation is 'magic': choose one of"),
        option("--folds 1", "folds is 1: cross-fitting needs at least two."),
        option("--folds many", "Invalid value for '--folds'"),
        option("--seed -1", "Invalid value for '--seed'"),
        option("--seed 4294967296", "Invalid value for '--seed'"),
        option("--seed 9223372036854775808", "Invalid value for '--seed'"),
        option("--seed one", "Invalid value for '--seed'"),
        option("--set steps", "--set steps: write NAME=VALUE, such as --set steps=60."),
        option("--set =3", "There is no setting '': choose one of"),
        option("--set stepps=3", "There is no setting 'stepps': did you mean steps?"),
        option("--set device=cpu", "device can't be set with --set: see the other options with --help."),
        option("--set steps=many", "steps is 'many': it must be a whole number."),
        option("--set steps=-1", "steps is -1: it must be at least 0."),
        option("--set steps=1.5", "steps is 1.5: it must be a whole number."),
        option("--set steps=true", "steps is True: it must be a whole number."),
        option("--set steps=10000000000", "steps is 10000000000: it must be at most 2147483647."),
        option("--set batch_size=1", "batch_size is 1: it must be at least 2."),
        option("--set learning_rate=0", "learning_rate is 0: it must be above 0."),
        option("--set learning_rate=Infinity", "learning_rate is inf: it must be a finite number."),
        option("--set learning_rate=NaN", "learning_rate is nan: it must be a finite number."),
        option("--set temperature=1e999", "temperature is inf: it must be a finite number."),
        option("--set warmup=2", "warmup is 2: it must be between 0 and 1."),
        option("--set loss=magic", "loss is 'magic': choose one of"),
        option("--set optimizer=3", "optimizer is 3: choose one of"),
        option("--set relaxation=maybe", "relaxation is 'maybe': it must be true or false."),
        option("--set pooling=middle", "pooling is 'middle': choose one of"),
        option("--set template=3", "template is 3: it must be a text."),
        option("--set max_length=4", "max_length is 4: it must be at least 8."),
        option("--set folds=3", "folds can't be set with --set: see the other options with --help."),
        option("--template 'It was [MASK].'", "The template 'It was [MASK].' has no {a}: say where the text goes."),
        option("--template '{a} It was good.'", "The template '{a} It was good.' has no [MASK]: say where the model gives its answer."),
        option("--template '{a} [MASK] {c}'", "The template '{a} [MASK] {c}' names {c}: the only places for texts are {a} and {b}."),
        option("--template '{a} [MASK] }'", "The template '{a} [MASK] }' has a lone brace: texts are written {a}, {b}."),
        option("--template '{a} {a} [MASK]'", "The template '{a} {a} [MASK]' names the same text twice."),
        option("--template '{a} [MASK] [MASK]'", "The template '{a} [MASK] [MASK]' has 2 [MASK]s: one is needed."),
        option("--template '{a} [MASK] {b}'", "The template '{a} [MASK] {b}' is for pairs of texts: give examples of that kind, or another template."),
        option("--template '{a:shouted} [MASK]'", "The template '{a:shouted} [MASK]' names {a:shouted}: there are only {a:chopped} (without its last character) and {a:lowered} (with its first letter in lower case)."),
        option("--template '{a} [PRO*9999] [MASK]'", "The template '{a} [PRO*9999] [MASK]' asks for 9999 [PRO]s: ask for 1 to 1000."),
        option("--template '{a} [NAME] [MASK]'", "The template '{a} [NAME] [MASK]' has the mark [NAME]: there are only [MASK], [SEP], [JOIN], [CLS], [PRO] and [PRO*5] for five of those."),
        option("--label-words good=great", "--label-words is for methods with label words, and cp-tuning has none: leave it out, or choose another --method."),
        option("--method pet --label-words great", "--label-words is 'great': write LABEL=WORD for each label, such as good=great,bad=terrible."),
        option("--method pet --label-words good=great", "label_words has no word for the label 'bad': give one for each of bad, good."),
        option("--method pet --label-words good=great,bad=dull,odd=odd", "label_words names 'odd', which is not a label."),
        option("--task SST-2", "--task is for methods with label words, and cp-tuning has none: leave it out, or choose another --method."),
        option("--method pet --task magic", "There is no task 'magic' among the prompts: use one of"),
        option("--method pet --task SST-2", "The task SST-2 has no word for the label 'bad': give one for each of bad, good."),
        option("--unknown-threshold far", "--unknown-threshold is 'far': give auto, a similarity between -1 and 1, or a target such as 'error<=0.05'."),
        option("--unknown-threshold 2", "--unknown-threshold is '2': give auto, a similarity between -1 and 1, or a target such as 'error<=0.05'."),
        option("--unknown-threshold nan", "--unknown-threshold is 'nan': give auto, a similarity between -1 and 1, or a target such as 'error<=0.05'."),
        option("--unknown-threshold error<=2", "'error<=2' can't be a target: the share of wrong answers must be between 0 and 1, as in \"error<=0.05\"."),
        option("--unknown-threshold auto --validation none --set steps=1", "unknown_threshold=\"auto\" needs held-out examples: give a dev set, or leave validation at \"cross-fit\"."),
        option("--class-weight heavy", "--class-weight is 'heavy': write LABEL=NUMBER for each label, such as a=0.2,b=0.8."),
        option("--class-weight odd=2", "class_weight names 'odd', which is not a label."),
        option("--class-weight good=0", "class_weight is 0 for a label: give numbers above 0."),
        option("--class-weight good=inf", "class_weight is inf for the label 'good': give a number."),
        option("--class-prior good=0.5", "class_prior has no share for the label 'bad': give one for each label."),
        option("--class-prior good=0.5,bad=0.6", "The shares in class_prior add up to 1.1: they must add up to 1."),
        option("--class-prior good=1,bad=0", "class_prior has the share 0: give numbers above 0."),
        option("--class-prior good=0.5,bad=nan", "class_prior is nan for the label 'bad': give a number."),
        option("--method pet --class-prior good=0.5,bad=0.5", "--class-prior is for the method cp-tuning: leave it out with pet."),
        option("--init-from @/new", "': make one with `cptuning fit` or a classifier's save.", "`--init-from` a folder that does not exist"),
        option("--init-from @foreign", "does not hold a CP-Tuning model (no cptuning.json).", "`--init-from` some other folder"),
        option("--init-from @onnx", "init_from is an exported model: give the folder it was exported from.", "`--init-from` an exported model"),
        option("--no-such-option", "No such option: --no-such-option"),
        command("`fit` without an output", "fit @films", "Missing option '--output'."),
        command("an output folder with somebody's files", "fit @films --output @foreign", "exists and is not a CP-Tuning model: choose another place."),
        command("an output that is a file", "fit @films --output @films", "exists and is not a CP-Tuning model: choose another place."),
        command("an output inside a file", "fit @films --output @films/model", "can't be written: File exists."),
        command("an output with a name of 300 characters", f"fit @films --output @/{LONG}", "can't be written: File name too long."),
    ],
    "Other commands": [
        command("no such command", "conjure", "No such command 'conjure'."),
        command("`predict` with a model that does not exist", "predict @/new @films", "': make one with `cptuning fit` or a classifier's save."),
        command("`predict` with some other folder", "predict @foreign @films", "does not hold a CP-Tuning model (no cptuning.json)."),
        command("a model with a name of 300 characters", f"info @/{LONG}", "can't be read: File name too long."),
        command("`predict` on a file that does not exist", "predict @model @/new.csv", "does not exist: check the name and the folder."),
        command("single texts for a model of pairs", "predict @pair-model @films", "has single texts but the model takes pairs: name the column of the second text with --text-b."),
        command("pairs for a model of single texts", "evaluate @model @pairs", "has pairs of texts but the model takes single texts: name the one column with --text."),
        command("a column `prediction` that is there already", "predict @model @/t.csv", "already has a column 'prediction': rename or remove it.", files={"t.csv": "text,prediction\na,x\n"}),
        command("`predict --json` among the rows", "predict @model @films --json", "--json prints its summary to stdout, where the rows go: name a file with --output, or use --format jsonl for rows as JSON."),
        command("`predict --format` for files", "predict @model @films --output @/o.csv --format csv", "--format is only for stdin and stdout: the format of a file is known by its suffix."),
        command("`predict --format` that does not exist", "predict @model - --format word", "Unknown format 'word': use one of", stdin=b"text\na\n"),
        command("`predict` into a folder that does not exist", "predict @model @films --output @/new/o.csv", "can't be written: there is no folder "),
        command("`predict` into another kind of file", "predict @model @films --output @/o.docx", "unknown kind of file, use .csv, .tsv or .jsonl (or these with .gz), .parquet or .xlsx."),
        command("`predict` into a name of 300 characters", f"predict @model @films --output @/{LONG}.csv", "can't be used: File name too long."),
        command("`predict --neighbours -1`", "predict @model @films --neighbours -1", "Invalid value for '--neighbours'"),
        command("`predict --neighbours` of a rival", "predict @rival @films --neighbours 2", "This model does not answer by nearness to examples, so it has no examples to show: use method cp-tuning."),
        command("`predict --workers` without Ray", "predict @model @films --workers 2", "--runner must be local or ray, and --workers needs --runner ray."),
        command("`predict --runner` that does not exist", "predict @model @films --runner magic", "--runner must be local or ray, and --workers needs --runner ray."),
        command("`predict --class-prior` of an unknown label", "predict @model @films --class-prior odd=1", "class_prior names 'odd', which is not a label."),
        command("a broken row far down, after rows that were read", "predict @model @/t.csv --output @/o.csv", "line 602 has 2 cells but the header has 1: put texts that contain the separator in double quotes.", files={"t.csv": "text\n" + "a\n" * 600 + "b,c\n"}),
        command("`evaluate` without labels", "evaluate @model @/t.csv", "has no column 'label' (its columns are 'text', 'id', 'by'): name the right one with --label.", files={"t.csv": "text,id,by\na,1,x\nb,2,y\n"}),
        command("`evaluate --report` into a folder that does not exist", "evaluate @model @films --report @/new/r.html", "can't be written: there is no such folder."),
        command("`explain` without a text", "explain @model", "Give either a text, as in cptuning explain MODEL \"a text\", or --file."),
        command("`explain` with a text and a file", "explain @model a --file @films", "Give either a text, as in cptuning explain MODEL \"a text\", or --file."),
        command("`explain -k 0`", "explain @model a -k 0", "Invalid value for '-k'"),
        command("`explain` with half a pair", "explain @pair-model a", "takes pairs: give the second text with --text-b."),
        command("`explain` with a text too many", "explain @model a --text-b b", "takes single texts: omit --text-b."),
        command("`explain` of a rival", "explain @rival a", "This model does not answer by nearness to examples, so it has no examples to show: use method cp-tuning."),
        command("pairs added to single texts", "add @model @pairs", "has pairs of texts but the model takes single texts: name the one column with --text."),
        command("examples added to a rival", "add @rival @films", "This model does not answer by nearness to examples, so it learns only by training: fit it again, or use method cp-tuning."),
        command("examples added without labels", "add @model @/t.csv", "has no column 'label' (its columns are 'text', 'id', 'by'): name the right one with --label.", files={"t.csv": "text,id,by\na,1,x\nb,2,y\n"}),
        command("`export --to` another format", "export @model --to word", "There is no export to 'word': use --to onnx."),
        command("`export` onto the model itself", "export @model --output @model", "An export can't be trained further, so it does not take the model's place: choose another --output."),
        command("`export` of an exported model", "export @onnx --output @/out", "This model is exported already: export the folder it came from."),
        command("`export` of a rival", "export @rival --output @/out", "Only models of the method cp-tuning can be exported; this one is of the method fine-tuning."),
        command("`export` over somebody's files", "export @pair-model --output @foreign", "exists and is not a CP-Tuning model: choose another place."),
        command("`export --no-second-look` without `--int8`", "export @model --no-second-look", "--no-second-look needs --int8: other exports have no second look."),
        command("`suggest -n 0`", "suggest @model @films -n 0", "Invalid value for '-n'"),
        command("`suggest` from a file that does not exist", "suggest @model @/new.csv", "does not exist: check the name and the folder."),
        command("`suggest` from pairs", "suggest @model @pairs", "has pairs of texts but the model takes single texts: name the one column with --text."),
        command("`check` of a file that does not exist", "check @/new.csv", "does not exist: check the name and the folder."),
        command("`check --report` into a folder that does not exist", "check @films --report @/new/r.html", "can't be written: there is no such folder."),
        command("`learning-curve --sizes few`", "learning-curve @films --sizes few", "--sizes is 'few': give positive numbers, such as 2,4,8."),
        command("`learning-curve --sizes 99`", "learning-curve @films --sizes 99", "--sizes is '99', but no class has more than 3 examples to train on."),
        command("`learning-curve --sizes 0`", "learning-curve @films --sizes 0", "--sizes is '0': give positive numbers, such as 2,4,8."),
        command("`learning-curve --repeats 0`", "learning-curve @films --repeats 0", "Invalid value for '--repeats'"),
        command("a learning curve as a text file", "learning-curve @films --output @/c.txt", "name a file that ends in .html or .png."),
        command("`serve` with a folder that does not exist", "serve @/new --port 0", "name one that holds a model."),
        command("`serve` with a folder without models", "serve @foreign --port 0", "is not a model folder and contains none: create one with `cptuning fit`."),
        command("`serve --port 70000`", "serve @model --port 70000", "Invalid value for '--port'"),
        command("`serve --timeout inf`", "serve @model --timeout inf", "Invalid value for '--timeout'"),
        command("`serve --timeout nan`", "serve @model --timeout nan", "Invalid value for '--timeout'"),
        command("`serve --timeout 0`", "serve @model --timeout 0", "Invalid value for '--timeout'"),
        command("`serve --batch-wait 20000`", "serve @model --batch-wait 20000", "Invalid value for '--batch-wait'"),
        command("`serve --batch-wait nan`", "serve @model --batch-wait nan", "Invalid value for '--batch-wait'"),
        command("`serve` for other machines without a key", "serve @model --port 0 --host 0.0.0.0", "0.0.0.0 can be reached from other machines: set CPTUNING_API_KEYS to a secret that clients must send, or listen on 127.0.0.1.", environment={"CPTUNING_API_KEYS": ""}),
        command("`serve` with a key that can be guessed", "serve @model --port 0", "A key in CPTUNING_API_KEYS has fewer than 16 characters, which can be guessed: make one with `openssl rand -hex 32`.", environment={"CPTUNING_API_KEYS": "secret"}),
        command("`serve` on a host that does not exist", "serve @model --port 0 --host no.such.host.invalid", "There is no address 'no.such.host.invalid' to listen on.", environment={"CPTUNING_API_KEYS": ""}),
        command("`serve --default` that does not exist", "serve @model --port 0 --default odd", "There is no model 'odd' to use as the default, only model."),
        command("`app --port 0`", "app --port 0", "Invalid value for '--port'"),
        command("`reproduce` of no study", "reproduce magic --output @/out", "There is no study 'magic': use one of"),
        command("`reproduce --seeds -1`", "reproduce main --seeds -1 --output @/out", "--seeds is '-1': give whole numbers from 0 to 4294967295, such as 13,21."),
        command("`reproduce --seeds one`", "reproduce main --seeds one --output @/out", "--seeds is 'one': give whole numbers from 0 to 4294967295, such as 13,21."),
        command("`reproduce --steps many`", "reproduce main --steps many --output @/out", "--steps is 'many': give a whole number."),
        command("`reproduce --datasets` that do not exist", "reproduce main --datasets odd --output @/out", "There is no data set 'odd': use one of"),
        command("`reproduce --methods` that do not exist", "reproduce main --methods odd --output @/out", "There is no method 'odd': use some of"),
        command("`reproduce --runner` that does not exist", "reproduce main --runner magic --output @/out", "There is no runner 'magic': use one of"),
        command("`reproduce --data` that does not exist", "reproduce main --data @/new --output @/out", "is not a folder: name a folder with the data sets."),
        command("`compare` of folders that do not exist", "compare @/a @/b", "holds no results: name a folder that `cptuning reproduce` wrote."),
        command("a limit of a file that is none", "fit @films --output @/out", "CPTUNING_LARGEST_FILE is '-1': give a number of bytes up to 9223372036854775807.", environment={"CPTUNING_LARGEST_FILE": "-1"}),
        command("a limit of lines that is none", "fit @films --output @/out", "CPTUNING_LONGEST_LINE is 'long': give a number of bytes up to 2147483647.", environment={"CPTUNING_LONGEST_LINE": "long"}),
    ],
    "Model folders": [
        folder("no `cptuning.json`", lacking("cptuning.json"), "does not hold a CP-Tuning model (no cptuning.json)."),
        folder("`cptuning.json` is not JSON", holding("cptuning.json", "{"), "is damaged"),
        folder("`cptuning.json` is a list", holding("cptuning.json", "[]"), "is damaged (its format is not a whole number): save the model again."),
        folder("`cptuning.json` is empty", holding("cptuning.json", ""), "is damaged"),
        folder("`cptuning.json` is not UTF-8", holding("cptuning.json", b"\xff"), "is damaged"),
        folder("`cptuning.json` is nested very deep", holding("cptuning.json", "[" * 100_000), "is damaged"),
        folder("`cptuning.json` is too large", holding("cptuning.json", b" " * 16_000_001), "is damaged (it is too large): save the model again."),
        folder("`cptuning.json` holds NaN", facts("temperature", float("nan")), "is damaged (it holds NaN, which is not JSON): save the model again."),
        folder("a newer version wrote it", facts("format", 99), "was written by a newer cptuning (format 99, this one reads up to 2): pip install --upgrade cptuning."),
        folder("a format that is not a number", facts("format", "two"), "is damaged (its format is not a whole number): save the model again."),
        folder("a format of 0", facts("format", 0), "is damaged (its format is not a whole number): save the model again."),
        *(
            folder(f"no `{name}`", without(name), "is missing")
            for name in ("method", "classes", "settings", "layout", "temperature", "training", "versions", "parameters")
        ),
        folder("an unknown method", facts("method", "magic"), "is damaged (method is 'magic': use one of"),
        folder("classes that are not a list", facts("classes", "good"), "is damaged (Saved classes must be a list of strings, numbers or booleans): save the model again."),
        folder("a class twice", facts("classes", ["yes", "yes"]), "is damaged (A class is listed twice, among 'yes', 'yes'): save the model again."),
        folder("a class that is a list", facts("classes", ["yes", ["no"]]), "is damaged (Saved classes must be a list of strings, numbers or booleans): save the model again."),
        folder("a class too few", facts("classes", ["yes"]), "is damaged (its support set has other classes): save or copy it again."),
        folder("a temperature of 0", facts("temperature", 0), "is damaged (temperature is 0, not a number between 1e-06 and 1e+06): save the model again."),
        folder("a temperature that is a word", facts("temperature", "warm"), "is damaged (temperature is 'warm', not a number): save the model again."),
        folder("a threshold that is a word", facts("unknown_threshold", "far"), "is damaged (unknown_threshold is 'far', not a number): save the model again."),
        folder("a class prior of the wrong length", facts("class_prior", [0.2, 0.3, 0.5]), "is damaged (class_prior is [0.2, 0.3, 0.5], not a share for each class): save the model again."),
        folder("label sets of no known format", facts("label_sets", {"format": "odd"}), "is damaged (The format of the label sets is 'odd'): save the model again."),
        folder("an unknown setting", facts("settings", "magic", 1), "is damaged (there is no setting 'magic'): save the model again."),
        folder("a setting of the wrong kind", facts("settings", "steps", "many"), "is damaged (its settings can't be: steps is 'many': it must be a whole number): save the model again."),
        folder("a setting that is missing", without("settings", "steps"), "is damaged (settings.steps is missing): save the model again."),
        folder("a vocabulary of 0", facts("layout", "vocabulary", 0), "is damaged (layout.vocabulary is 0, not a whole number between 1 and 16777216): save the model again."),
        folder("a vocabulary of billions", facts("layout", "vocabulary", 4_000_000_000), "is damaged (layout.vocabulary is 4000000000, not a whole number between 1 and 16777216): save the model again."),
        folder("a negative token", facts("layout", "special", "mask", -1), "is damaged (layout.special.mask is -1, not a whole number between 0 and 152): save the model again."),
        folder("a template that is none", facts("layout", "template", "{c}"), "is damaged (The template '{c}' names {c}: the only places for texts are {a} and {b}): save the model again."),
        folder("a template for single texts", facts("layout", "template", "{a} [MASK]"), "is damaged (its support set contains values that are not texts): save or copy it again."),
        folder("a length of 0", facts("layout", "max_length", 0), "is damaged (layout.max_length is 0, not a whole number between 1 and 1048576): save the model again."),
        folder("a checkpoint folder", facts("parameters", "checkpoint_dir", "/"), "is damaged (it sets the parameter checkpoint_dir, which is for whoever runs the model to choose): save the model again."),
        folder("a parameter that does not exist", facts("parameters", "magic", 1), "is damaged (cp-tuning does not take this parameter: CPTuningClassifier.__init__() got an unexpected keyword argument 'magic'.): save or copy it again.", "add @/model @pairs"),
        folder("label sets in a strange notation", facts("training", "label_cells", {"separator": "", "columns": []}), "is damaged (training.label_cells is not how a file holds label sets): save the model again."),
        folder("a training without a seed", without("training", "seed"), "is damaged (training.seed is missing): save the model again."),
        folder("no tokenizer", lacking("tokenizer.json"), "is damaged (tokenizer.json: No such file or directory): save or copy it again."),
        folder("a tokenizer that is not JSON", holding("tokenizer.json", "{"), "is damaged"),
        folder("a token with a number past the vocabulary", in_json("tokenizer.json", "model", "vocab", "red", 99_999), "is damaged (its tokenizer has the id 99999, and its vocabulary ends at 153): save or copy it again."),
        folder("no examples", lacking("support.safetensors"), "is damaged (No such file or directory: "),
        folder("examples that are cut off", cut("support.safetensors"), "is damaged"),
        folder("examples that are not safetensors", holding("support.safetensors", bytes(99)), "is damaged"),
        folder("embeddings that are NaN", tensors("support.safetensors", lambda t: t | {"embeddings": t["embeddings"] * float("nan")}), "is damaged (its support set has no numbers to compare with): save or copy it again."),
        folder("embeddings of another length", tensors("support.safetensors", lambda t: t | {"embeddings": t["embeddings"][:, :3]}), "is damaged (its embeddings and those of its examples are of different lengths): save or copy it again."),
        folder("embeddings of half precision", tensors("support.safetensors", lambda t: t | {"embeddings": t["embeddings"].astype("float16")}), "is damaged (its support set has numbers of another kind): save or copy it again."),
        folder("labels of other classes", tensors("support.safetensors", lambda t: t | {"labels": t["labels"] + 9}), "is damaged (its support set has other classes): save or copy it again."),
        folder("fewer labels than examples", tensors("support.safetensors", lambda t: t | {"labels": t["labels"][:2]}), "is damaged (its support set is not whole): save or copy it again."),
        folder("no labels at all", tensors("support.safetensors", lambda t: {"embeddings": t["embeddings"]}), "is damaged ('labels' is missing): save or copy it again."),
        folder("no texts of the examples", lacking("support.jsonl"), "is damaged (support.jsonl: No such file or directory): save or copy it again."),
        folder("a text too few", cut("support.jsonl"), "is damaged"),
        folder("single texts in a model of pairs", holding("support.jsonl", '"a"\n' * 4), "is damaged (its support set contains values that are not pairs of texts): save or copy it again."),
        folder("a text that is a number", holding("support.jsonl", "[1, 2]\n" * 4), "is damaged (its support set contains values that are not pairs of texts): save or copy it again."),
        folder("added examples that are damaged", holding("added.jsonl", "{}\n"), "line 1 is damaged ('texts' is missing): fix or remove that line."),
        folder("added examples that are not JSON", holding("added.jsonl", "{\n"), "line 1 is damaged"),
        folder("no backbone", lacking("backbone"), "is damaged (No such file or directory): save or copy the model again."),
        folder("no configuration of the backbone", lacking("backbone/config.json"), "is damaged (No such file or directory): save or copy the model again."),
        folder("a configuration that is not JSON", holding("backbone/config.json", "{"), "is damaged"),
        folder("a configuration of another model", in_json("backbone/config.json", "model_type", "magic"), "could not be loaded as a masked language model:"),
        folder("ten million layers", in_json("backbone/config.json", "num_hidden_layers", 10_000_000), "says num_hidden_layers=10000000, which does not match its weights: save or copy the model again."),
        folder("weights that are cut off", cut("backbone/model.safetensors"), "could not be loaded as a masked language model: there is no file named model.safetensors, or it is damaged."),
        folder("weights that are missing", lacking("backbone/model.safetensors"), "could not be loaded as a masked language model: there is no file named model.safetensors, or it is damaged."),
        folder("prompt vectors that are missing", lacking("prompts.safetensors"), "is damaged (No such file or directory: "),
        folder("prompt vectors of another length", tensors("prompts.safetensors", lambda t: {k: v[..., :3] for k, v in t.items()}), "is damaged (its prompts have another shape): save or copy it again."),
        folder("more than a thousand files", many_files, "holds more than 1001 files."),
        folder("more bytes than a model may have", lambda model: None, "holds more than 1000 bytes: set CPTUNING_LARGEST_MODEL to more if they are all its own.", environment={"CPTUNING_LARGEST_MODEL": "1000"}),
        folder("a file that is a link", linked("support.jsonl"), "holds 'support.jsonl', which is neither a file nor a folder: a model has no links, pipes or devices in it."),
        folder("a folder that is a link", linked("backbone"), "holds 'backbone', which is neither a file nor a folder: a model has no links, pipes or devices in it."),
        folder("a pipe", lambda model: os.mkfifo(model / "pipe"), "holds 'pipe', which is neither a file nor a folder: a model has no links, pipes or devices in it."),
        folder("`add` to a damaged model", cut("support.safetensors"), "is damaged", "add @/model @pairs"),
        folder("`export` of a damaged model", cut("support.safetensors"), "is damaged", "export @/model --output @/out"),
        folder("`evaluate` with a damaged model", cut("backbone/model.safetensors"), "could not be loaded as a masked language model: there is no file named model.safetensors, or it is damaged.", "evaluate @/model @pairs --report @/r.html"),
        folder("`info` of a damaged model", facts("temperature", 0), "is damaged (temperature is 0, not a number between 1e-06 and 1e+06): save the model again.", "info @/model"),
        folder("`serve` of a damaged model", facts("temperature", 0), "is damaged (temperature is 0, not a number between 1e-06 and 1e+06): save the model again.", "serve @/model --port 0"),
        folder("`fit` from a damaged model", cut("backbone/model.safetensors"), "could not be loaded as a masked language model: there is no file named model.safetensors, or it is damaged.", "fit @pairs --output @/out --init-from @/model"),
    ],
    "Python": [
        python("clf.fit(None, labels)", "Examples cannot be read from a NoneType: give a list of texts."),
        python("clf.fit('a text', labels)", "A single text was given: put it in a list, as in ['the text']."),
        python("clf.fit([], [])", "There are no examples: give at least one text."),
        python("clf.fit([1, 2], labels)", "The text in row 1 is a number (int), not a text."),
        python("clf.fit(['a', None], labels)", "The text in row 2 is missing (None or NaN)."),
        python("clf.fit(['a', ('b', 'c')], labels)", "Row 1 is a single text but row 2 is a pair of texts: give all texts or all pairs of texts."),
        python("clf.fit([('a', 'b', 'c')] * 2, labels)", "Row 1 has 3 values: give a text or a pair of texts."),
        python("clf.fit({'text': texts}, labels)", "Examples cannot be read from a dict: use a list, a data frame or a Dataset."),
        python("clf.fit(['a', '\\ud800'], labels)", "The text in row 2 contains half of a surrogate pair, which is not valid."),
        python("clf.fit(texts, None)", "Labels cannot be read from a NoneType: give a list."),
        python("clf.fit(texts, 'xy')", "Labels cannot be read from a str: give a list."),
        python("clf.fit(texts, ['x'])", "There are 2 examples but 1 labels: give one label for each."),
        python("clf.fit(texts, ['x', None])", "The label in row 2 is missing (None or NaN)."),
        python("clf.fit(texts, ['x', '\\ud800'])", "The label in row 2 contains half of a surrogate pair, which is not valid."),
        python("clf.fit(texts, ['x', {}])", "The label in row 2 is of type dict, which is not hashable: use a text or a number."),
        python("clf.fit(texts, ['x', 'x'])", "All 2 examples are labelled 'x': a classifier needs examples of at least two classes."),
        python("clf.fit(texts, [1, True])", "The labels 1 and True are equal in Python but of different types: use one type for all labels."),
        python("clf.fit(texts, [[], []])", "No text has a label: give at least one text a label."),
        python("clf.fit(texts, np.array([[0, 1], [1, 2]]))", "The label matrix has 2 in row 2, column 2: give 1 for a label that the text has, and 0 otherwise."),
        python("clf.fit(texts, labels, X_dev=texts)", "Give X_dev and y_dev together, or neither."),
        python("clf.fit(texts, labels, X_dev=['a'], y_dev=['odd'])", "The label 'odd' in row 1 is not one of the classes ('x', 'y')."),
        python("clf.fit(texts, labels, X_dev=[('a', 'b')], y_dev=['x'])", "The model expects single texts, but pairs of texts were given: pass one text for each."),
        python("clf.fit(texts, labels, unlabeled=[('a', 'b')])", "The model expects single texts, but pairs of texts were given: pass one text for each."),
        python("clf.fit(texts, labels, init_from=5)", "init_from is 5: give a path, as a string or a Path."),
        python("clf.fit(texts, labels, sample_weight=[1])", "sample_weight has shape (1,) for 2 examples: give one number for each."),
        python("clf.fit(texts, labels, sample_weight=[1, -1])", "sample_weight is -1.0 in row 2: give numbers of at least 0."),
        python("clf.fit(texts, labels, sample_weight=['a', 'b'])", "sample_weight contains values that are not numbers: give one number per example."),
        python("clf.fit(texts, labels, sample_weight=[0, 0])", "All weights of examples are 0: give at least one a positive weight."),
        python("CPTuningClassifier(None).fit(texts, labels)", "backbone is None: give a path, as a string or a Path."),
        python("CPTuningClassifier(5).fit(texts, labels)", "backbone is 5: give a path, as a string or a Path."),
        python("CPTuningClassifier(preset=5).fit(texts, labels)", "There is no preset 5: choose one of"),
        python("CPTuningClassifier(preset=['default']).fit(texts, labels)", "There is no preset ['default']: choose one of"),
        python("CPTuningClassifier(callbacks=5).fit(texts, labels)", "callbacks is 5: give a list of cptuning.training.Callback."),
        python("CPTuningClassifier(callbacks=['a']).fit(texts, labels)", "callbacks has 'a', which is not a cptuning.training.Callback: make its class a subclass of that."),
        python("CPTuningClassifier(random_state='a').fit(texts, labels)", "random_state is 'a': give a whole number from 0 to 4294967295."),
        python("CPTuningClassifier(random_state=2**32).fit(texts, labels)", "random_state is 4294967296: give a whole number from 0 to 4294967295."),
        python("CPTuningClassifier(device=None).fit(texts, labels)", "The device None is not available: use 'auto' or 'cpu'."),
        python("CPTuningClassifier(folds='a').fit(texts, labels)", "folds is 'a': cross-fitting needs at least two."),
        python("CPTuningClassifier(precision='fp8').fit(texts, labels)", "precision is 'fp8': choose one of"),
        python("CPTuningClassifier(checkpoint_dir=5, backbone=tiny).fit(texts, labels)", "checkpoint_dir is 5: give a path, as a string or a Path."),
        python("CPTuningClassifier(checkpoint_seconds=-1).fit(texts, labels)", "checkpoint_seconds is -1: give a number of seconds."),
        python("CPTuningClassifier(class_weight=5).fit(texts, labels)", "class_weight is 5: give \"balanced\", or a dictionary from labels to numbers."),
        python("CPTuningClassifier(class_weight={'x': 10**400}).fit(texts, labels)", "give a number"),
        python("clf.fit(texts, labels, sample_weight=[1, 10**400])", "sample_weight contains values that are not numbers: give one number per example."),
        python("CPTuningClassifier(unknown_threshold=10**400).fit(texts, labels)", "give a similarity"),
        python("CPTuningClassifier(class_prior='a').fit(texts, labels)", "class_prior is 'a': give a dictionary from labels to shares, or 2 numbers, one for each class."),
        python("CPTuningClassifier(unknown_threshold='far').fit(texts, labels)", "unknown_threshold is 'far': give a similarity, a number, \"auto\", a target such as \"error<=0.05\", or None."),
        python("CPTuningClassifier(unknown_threshold='error<=0.1', class_prior=[0.5, 0.5]).fit(texts, labels)", "A target for unknown_threshold is met on texts like the examples, and class_prior says that the texts are others: leave one of them out."),
        python("CPTuningClassifier(ordinal=True).fit(texts, ['low', 'high'])", "is not a number: give ordinal the labels from the least to the greatest."),
        python("CPTuningClassifier(ordinal=['a']).fit(texts, ['a', 'b'])", "ordinal has no place for the label 'b': name each one once."),
        python("CPTuningClassifier(ordinal='high').fit(texts, labels)", "ordinal is 'high': give True, or the labels from the least to the greatest."),
        python("CPTuningClassifier(long_texts='middle').fit(texts, labels)", "long_texts is 'middle': choose one of 'truncate', 'windows'."),
        python("CPTuningClassifier(most_windows=0).fit(texts, labels)", "most_windows is 0: it must be between 1 and 1024."),
        python("CPTuningClassifier(unknown_threshold=0.5).fit(texts, ['unknown', 'x'])", "A class is called 'unknown', which is the answer to texts far from everything: rename it, or leave unknown_threshold out."),
        python("CPTuningClassifier(inference='knn').fit(texts, [['x'], ['y']])", "inference is 'knn', which answers one label per text: leave it out, label sets are answered in closed form."),
        python("CPTuningClassifier(class_weight='balanced').fit(texts, [['x'], ['y']])", "class_weight is for one label per text: weight examples with sample_weight instead."),
        python("make_classifier('pet').fit(texts, [['x'], ['y']])", "The method pet answers one label per text, but label sets were given: use method cp-tuning."),
        python("make_classifier('magic')", "There is no method 'magic': use one of"),
        python("make_classifier('pet', magic=1)", "pet does not take this parameter: got an unexpected keyword argument 'magic'."),
        python("clf.predict(texts)", "This CPTuningClassifier is not fitted yet: call fit, or take one from cptuning.load."),
        python("clf.save(new)", "This CPTuningClassifier is not fitted yet: call fit, or take one from cptuning.load."),
        python("fitted.predict('a text')", "A single text was given: put it in a list, as in ['the text']."),
        python("fitted.predict([])", "There are no examples: give at least one text."),
        python("fitted.predict([('a', 'b')])", "The model expects single texts, but pairs of texts were given: pass one text for each."),
        python("fitted.predict([3.5])", "The text in row 1 is a number (float), not a text."),
        python("fitted.score(texts, ['x'])", "There are 2 examples but 1 labels: give one label for each."),
        python("fitted.explain(texts, k='a')", "k is 'a': give a whole number of examples, at least 1."),
        python("fitted.explain(texts, k=0)", "k is 0: give a whole number of examples, at least 1."),
        python("fitted.add_examples(texts, ['x'])", "There are 2 examples but 1 labels: give one label for each."),
        python("fitted.add_examples([('a', 'b')], ['x'])", "The model expects single texts, but pairs of texts were given: pass one text for each."),
        python("fitted.add_examples(['a'], [None])", "The label in row 1 is missing (None or NaN)."),
        python("fitted.set_class_prior({'x': 1})", "class_prior has no share for the label 'y': give one for each label."),
        python("fitted.set_class_prior([0.5, 0.6])", "The shares in class_prior add up to 1.1: they must add up to 1."),
        python("fitted.save(None)", "folder is None: give a path, as a string or a Path."),
        python("fitted.save('')", "folder is empty: give the path of a file or folder."),
        python("fitted.save('a' * 300)", "can't be written: File name too long."),
        python("fitted.export(5)", "folder is 5: give a path, as a string or a Path."),
        python("cptuning.load(None)", "folder is None: give a path, as a string or a Path."),
        python("cptuning.load('no-such-folder')", "There is no model folder 'no-such-folder': make one with `cptuning fit` or a classifier's save."),
        python("cptuning.load(model, device='abacus')", "can't be used: The device 'abacus' is not available: use 'auto' or 'cpu'."),
        python("load_backbone(None)", "backbone is None: give a path, as a string or a Path."),
        python("load_backbone('no-such-folder')", "The backbone 'no-such-folder' is neither a folder here nor could it be fetched from the hub: check its name and the network, download it once and give its folder, or use one of"),
        python("read_table('no-such-file.csv')", "no-such-file.csv does not exist: check the name and the folder."),
    ],
    "The service": [
        http("an empty object", {}, "In the body, texts: field required."),
        http("a list", [], "The body: input should be a valid dictionary or object to extract fields from."),
        http("no JSON", b"{", "The body is not valid JSON", 400),
        http("no UTF-8", b'{"texts": ["\xff"]}', "The body can't be read: send JSON in UTF-8.", 400),
        http("a form", b"texts=a", "The body is not valid JSON", 400),
        http("no texts", {"texts": []}, "There are no examples: give at least one text."),
        http("texts that are a number", {"texts": 3}, "The value of texts is neither a text nor a list of texts or pairs."),
        http("a text that is null", {"texts": ["a", None]}, "The text in row 2 is missing (None or NaN)."),
        http("a text that is a number", {"texts": ["a", 3]}, "The text in row 2 is a number (int), not a text."),
        http("three texts in place of a pair", {"texts": [["a", "b", "c"]]}, "Row 1 has 3 values: give a text or a pair of texts."),
        http("a pair among single texts", {"texts": ["a", ["b", "c"]]}, "Row 1 is a single text but row 2 is a pair of texts: give all texts or all pairs of texts."),
        http("single texts for a model of pairs", {"texts": ["a"]}, "The model expects pairs of texts, but single texts were given: pass (first, second) for each.", 409),
        http("half a surrogate pair", {"texts": [["a", "\ud800"]]}, "The second text in row 1 contains half of a surrogate pair, which is not valid."),
        http("a field that does not exist", {"texts": [["a", "b"]], "text": "b"}, "In the body, text: extra inputs are not permitted."),
        http("too many texts", {"texts": [["a", "b"]] * 300}, "There are 300 texts: send at most 256 at once."),
        http("a text that is too long", {"texts": [["a", "b" * 20_001]]}, "The text in row 1 has 20001 characters: send at most 20000."),
        http("`explain` below 0", {"texts": [["a", "b"]], "explain": -1}, "In the body, explain: input should be greater than or equal to 0."),
        http("`explain` above 100", {"texts": [["a", "b"]], "explain": 101}, "In the body, explain: input should be less than or equal to 100."),
        http("`explain` that is a word", {"texts": [["a", "b"]], "explain": "3"}, "The value of explain must be a whole number from 0 to 100."),
        http("a body that is too large", {"texts": ["a" * 1_100_000]}, "The body is larger than 1048576 bytes: send fewer texts at once.", 413),
        http("no labels", {"texts": [["a", "b"]], "labels": []}, "There are no labels: give one for each example.", path="/examples"),
        http("more labels than texts", {"texts": [["a", "b"]], "labels": ["yes", "no"]}, "There are 1 texts but 2 labels: give one label for each.", path="/examples"),
        http("a label that is empty", {"texts": [["a", "b"]], "labels": [""]}, "The label in row 1 must be a text of 1 to 1000 characters, a number up to 2^53 or a boolean.", path="/examples"),
        http("a label of blanks", {"texts": [["a", "b"]], "labels": [" "]}, "The label in row 1 must be a text of 1 to 1000 characters, a number up to 2^53 or a boolean.", path="/examples"),
        http("a label of four hundred digits", {"texts": [["a", "b"]], "labels": [10**400]}, "a number up to 2^53 or a boolean.", path="/examples"),
        http("a label that is null", {"texts": [["a", "b"]], "labels": [None]}, "The label in row 1 must be a text of 1 to 1000 characters, a number up to 2^53 or a boolean.", path="/examples"),
        http("a label that is too long", {"texts": [["a", "b"]], "labels": ["x" * 1001]}, "The label in row 1 must be a text of 1 to 1000 characters, a number up to 2^53 or a boolean.", path="/examples"),
        http("half a surrogate pair in a label", {"texts": [["a", "b"]], "labels": ["\ud800"]}, "The label in row 1 must be a text of 1 to 1000 characters, a number up to 2^53 or a boolean.", path="/examples"),
        http("labels 1 and true", {"texts": [["a", "b"], ["c", "d"]], "labels": [1, True]}, "The labels 1 and True are equal in Python but of different types: use one type for all labels.", path="/examples"),
        http("a model that does not exist", {"texts": ["a"]}, "There is no model with this name: GET /models lists the models.", 404, "/models/odd/predict"),
        http("a path that does not exist", {"texts": ["a"]}, "There is no such path: see /docs.", 404, "/conjure"),
    ],
}  # fmt: skip
