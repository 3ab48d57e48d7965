"""Distillation from a sentence encoder: targets, batches, the loss, and a run with all of them."""

import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import BertConfig, BertModel

from pretraining.batches import Drawer
from pretraining.distillation import (
    HELD_OUT_ONE_IN,
    LONGEST_PROMPT,
    PROMPTS,
    SentenceDrawer,
    distillation_loss,
)
from pretraining.export import export, read_model
from pretraining.model import SentenceHead, Shape
from pretraining.pairs import SETS, WORDS, LabelledPairs, read_pairs, tokenize_pairs
from pretraining.targets import Rows, centred, embedded, load_teacher, read_weights, texts_of
from pretraining.tokens import sentences_of, tokenize
from pretraining.train import Recipe, Trainer, sentence_loss
from pretraining.vocabulary import CLS, MASK, PAD, SEP, learn_vocabulary, save_for_transformers

ROOT = Path(__file__).parents[2]
PROMPT_WORDS = (
    "These are the same, part of it, similar, connected, related or different? Yes, no, then, also."
)
DISTILLATION_WORDS = "it is so was this that about topic : . in all , summary ! " + " ".join(
    word for words in WORDS.values() for word in words
)
ANIMALS = ("cat", "dog", "bird", "fish", "horse", "mouse")


def stories(n=400):
    rng = np.random.default_rng(0)
    made = []
    for _ in range(n):
        first, second = rng.choice(ANIMALS, 2)
        made.append(
            f"The {first} saw a {second} in the garden. Did the {second} run? "
            f"{PROMPT_WORDS} {DISTILLATION_WORDS}"
        )
    return made


@pytest.fixture(scope="module")
def tokenizer():
    return learn_vocabulary(stories(), size=300)


@pytest.fixture
def drawer(tokenizer):
    """300 texts of 2 to 20 tokens; the targets of text i point to i."""
    rng = np.random.default_rng(1)
    rows = [rng.integers(5, 100, size=rng.integers(2, 21)).tolist() for _ in range(300)]
    targets = np.zeros((300, 300), dtype=np.float16)
    np.fill_diagonal(targets, 1)
    made = SentenceDrawer(
        Rows.of(rows), targets, tokenizer.get_vocab(), (16, 32), device="cpu", seed=0
    )
    return made, rows


def slow_loss(student, teacher, temperature):
    """The loss by loops over the texts."""
    n = len(student)
    s = [v / np.linalg.norm(v) for v in student]
    t = [v / np.linalg.norm(v) for v in teacher]
    total = 0.0
    for i in range(n):
        total += (1 - s[i] @ t[i]) / n
        others = [j for j in range(n) if j != i]
        p = np.exp([t[i] @ t[j] / temperature for j in others])
        q = np.exp([s[i] @ s[j] / temperature for j in others])
        p, q = p / p.sum(), q / q.sum()
        total += sum(p * np.log(p / q)) / n
    return total


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_the_loss_is_the_one_of_the_slow_loop(temperature):
    rng = np.random.default_rng(0)
    student, teacher = rng.normal(size=(2, 7, 5))
    found = distillation_loss(torch.tensor(student), torch.tensor(teacher), temperature)
    assert float(found) == pytest.approx(slow_loss(student, teacher, temperature), rel=1e-4)


def test_the_gradient_is_the_one_of_finite_differences():
    rng = np.random.default_rng(0)
    student, teacher = rng.normal(size=(2, 5, 4))
    moving = torch.tensor(student, requires_grad=True)
    distillation_loss(moving, torch.tensor(teacher), 0.5).backward()
    for place in ((0, 0), (2, 3), (4, 1)):
        step = np.zeros_like(student)
        step[place] = 1e-5
        slope = slow_loss(student + step, teacher, 0.5) - slow_loss(student - step, teacher, 0.5)
        assert float(moving.grad[place]) == pytest.approx(slope / 2e-5, rel=1e-2, abs=1e-4)


def test_a_batch_is_the_text_then_perhaps_a_prompt(drawer, tokenizer):
    made, rows = drawer
    vocabulary = tokenizer.get_vocab()
    prompts = [[], *([vocabulary[word] for word in prompt.split()] for prompt in PROMPTS)]
    batch = made.draw(step=3, rows=64, length=32)
    with_prompt = 0
    for ids, attended, is_text, target in zip(
        batch.ids, batch.attended, batch.is_text, batch.targets, strict=True
    ):
        text = rows[int(target.argmax())]
        n = int(attended.sum())
        assert ids[attended].tolist() == ids[:n].tolist()
        assert set(ids[n:].tolist()) <= {PAD}
        assert ids[is_text].tolist() == text
        assert ids[0] == CLS
        assert ids[n - 1] == SEP
        rest = ids[1 + len(text) : n - 1].tolist()
        assert rest in prompts
        with_prompt += bool(rest)
        assert not rest or MASK in rest
    assert 10 < with_prompt < 54


def test_a_batch_depends_on_the_step_alone(drawer):
    made, _ = drawer
    first, other, again = (made.draw(step, rows=64, length=16) for step in (5, 6, 5))
    assert first.ids.equal(again.ids)
    assert not first.ids.equal(other.ids)


def test_texts_have_the_length_of_their_batch_and_held_out_ones_are_never_drawn(drawer):
    made, rows = drawer
    for length, (least, most) in {16: (0, 6), 32: (6, 22)}.items():
        room = length - 2 - LONGEST_PROMPT
        assert room == most
        drawn = set()
        for step in range(20):
            drawn |= set(made.draw(step, 64, length).targets.argmax(1).tolist())
        assert drawn
        assert all(least < len(rows[i]) <= most for i in drawn)
        assert not any(i % HELD_OUT_ONE_IN == 0 for i in drawn)
    held_out = made.held_out_batch(10).targets.argmax(1).tolist()
    assert held_out == [0, HELD_OUT_ONE_IN]


def test_the_sentence_head_reads_the_text_alone():
    torch.manual_seed(0)
    head = SentenceHead(Shape(width=4))
    hidden = torch.randn(2, 5, 4)
    is_text = torch.tensor([[0, 1, 1, 0, 0], [0, 1, 1, 1, 0]]).bool()
    expected = head.dense(torch.stack([hidden[0, 1:3].mean(0), hidden[1, 1:4].mean(0)]))
    torch.testing.assert_close(head(hidden, is_text), expected)
    hidden[:, 0] = 99.0
    torch.testing.assert_close(head(hidden, is_text), expected)


def test_the_texts_of_a_document_are_its_sentences_in_order():
    document = " ".join(f"Sentence number {i} is here." for i in range(40))
    found = list(texts_of(document, np.random.default_rng(0)))
    assert " ".join(found) == document
    counts = {len(sentences_of(text)) for text in found}
    assert counts <= {1, 2, 3, 4}
    assert len(counts) > 1


@pytest.fixture(scope="module")
def teacher(tmp_path_factory, tokenizer):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("teacher")
    config = BertConfig(
        vocab_size=300,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    BertModel(config).save_pretrained(folder)
    save_for_transformers(tokenizer, folder)
    return folder


def test_targets_are_the_teachers_mean_vectors_whatever_stands_beside_them(teacher):
    rng = np.random.default_rng(0)
    rows = [rng.integers(5, 300, size=n).tolist() for n in (3, 40, 7, 8, 9, 17)]
    model = load_teacher(teacher, "cpu")
    found = embedded(model, Rows.of(rows), "cpu").float()
    for row, vector in zip(rows, found, strict=True):
        with torch.no_grad():
            hidden = model(torch.tensor([row])).last_hidden_state[0]
        alone = functional.normalize(hidden.mean(0), dim=0)
        torch.testing.assert_close(vector, alone, atol=2e-2, rtol=0)  # bfloat16
        assert functional.cosine_similarity(vector, alone, dim=0) > 0.999


def test_centred_vectors_have_unit_length_and_no_common_part():
    torch.manual_seed(0)
    vectors = functional.normalize(torch.randn(500, 8) + 3, dim=1).half()
    found = centred(vectors.clone()).float()
    torch.testing.assert_close(found.norm(dim=1), torch.ones(500), atol=2e-3, rtol=0)
    assert vectors.float().mean(0).norm() > 0.8
    assert found.mean(0).norm() < 0.15


def test_only_known_sets_of_pairs_are_read_and_questions_meet_other_answers(tmp_path):
    for name in SETS:
        label = "answers" if name.startswith("faq") else "entailment"
        rows = [
            {"text_a": f"{name} {i}?", "text_b": f"{name} says {i}", "label": label}
            for i in range(6)
        ]
        write_pairs(tmp_path / f"{name}.jsonl.gz", rows)
    write_pairs(
        tmp_path / "stsb_en.jsonl.gz", [{"text_a": "MRPC", "text_b": "MRPC", "label": "3.0"}]
    )
    pairs = read_pairs(tmp_path)
    assert not any("MRPC" in a for a, _, _ in pairs)
    wrong = [(a, b) for a, b, label in pairs if label == "does not answer"]
    assert wrong
    assert all(a.rstrip("?") != b.replace(" says", "") for a, b in wrong)
    assert {label for _, _, label in pairs} == {"answers", "does not answer", "entailment"}


def write_pairs(path, rows):
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def some_pairs():
    return [("the cat", "a cat", "paraphrase"), ("the dog ran", "the bird", "contradiction")] * 20


def test_the_label_of_a_pair_is_the_word_at_its_mask(tokenizer):
    pairs = tokenize_pairs(some_pairs(), learn_vocabulary(stories(), size=300))
    assert pairs.a.shape == pairs.b.shape == (40, 43)
    vocabulary = tokenizer.get_vocab()
    drawer = Drawer(
        tokenize(stories(), tokenizer), vocabulary, device="cpu", seed=0, rate=0.2, pairs=pairs
    )
    batch = drawer.labelled_pairs(step=0, rows=32)
    names = {number: word for word, number in vocabulary.items()}
    said = set()
    for row, columns in enumerate(batch.columns[:, -1].tolist()):
        assert batch.ids[row, columns] == MASK
        # "these are [MASK] ." [SEP] stands at the end; the other prompt between the texts.
        at_end = columns == int(batch.attended[row].sum()) - 3
        said.add((at_end, names[int(batch.targets[row, -1])]))
    assert said == {(True, "same"), (True, "opposite"), (False, "yes"), (False, "no")}


TINY = {
    "width": 32,
    "layers": 2,
    "heads": 2,
    "tokens_a_step": 1024,
    "cycle": ("sentences:32", "text:32", "sentences:64", "pairs"),
    "learning_rate": 5e-3,
}


@pytest.fixture
def trainer(tokenizer, teacher, tmp_path):
    rng = np.random.default_rng(0)
    texts = [
        f"{rng.choice(ANIMALS)} {rng.choice(ANIMALS)} {rng.choice(ANIMALS)}" for _ in range(800)
    ]
    texts += [" ".join(rng.choice(ANIMALS, 30)) for _ in range(200)]
    rows = Rows.of([e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)])
    targets = centred(embedded(load_teacher(teacher, "cpu"), rows, "cpu")).numpy()
    vocabulary = tokenizer.get_vocab()
    pairs = tokenize_pairs(some_pairs(), learn_vocabulary(stories(), size=300))

    def make(folder="run", clock=None, teacher_vectors=True, **changes):
        recipe = Recipe(**TINY | {"steps": 120} | changes)
        drawer = Drawer(
            tokenize(stories(), tokenizer), vocabulary, device="cpu", seed=recipe.seed, pairs=pairs
        )
        known = targets if teacher_vectors else None
        sentences = SentenceDrawer(rows, known, vocabulary, (32, 64), device="cpu", seed=0)
        more = {} if clock is None else {"clock": clock}
        return Trainer(recipe, drawer, tmp_path / folder, device="cpu", sentences=sentences, **more)

    return make


def test_the_student_comes_near_its_teacher(trainer):
    run = trainer()
    before = run.held_out_cosine()
    run.run()
    assert before < 0.3
    assert run.held_out_cosine() > 0.7
    [line, *_] = (run.folder / "log.jsonl").read_text().splitlines()
    line = json.loads(line)
    assert line["pairs"] > 0
    assert set(line["gradients"]) == {"masked", "pairs", "sentences"}


def test_the_masks_of_prompts_keep_the_words_of_the_reference(trainer, tokenizer, tmp_path):
    first = trainer("first", cycle=("text:32",), steps=60)
    first.run()
    save_for_transformers(tokenizer, tmp_path / "tokenizer")
    export(first.folder, tmp_path / "tokenizer", tmp_path / "bert")
    start = {"start": str(tmp_path / "bert"), "cycle": ("sentences:32",), "steps": 60}

    def words_apart(run):
        batch = run.batch(7000)
        whole = sentence_loss(run.model, batch, first.model)
        return (whole - sentence_loss(run.model, batch)).item(), batch

    free, kept = trainer("free", **start), trainer("kept", **start, reference=start["start"])
    _, batch = words_apart(free)
    free.run()
    kept.run()
    assert words_apart(kept)[0] < 0.25 * words_apart(free)[0]
    assert kept.held_out_cosine() > 0.5
    # The slow way: one prompted row at a time.
    prompted = [row for row in range(len(batch.ids)) if MASK in batch.ids[row]]
    expected = []
    for row in prompted:
        ids = batch.ids[row][batch.attended[row]][None]
        place = ids[0].tolist().index(MASK)
        after = place + 1
        has_stop = int(ids[0, after] == tokenizer.get_vocab()["."])
        unstopped = torch.cat([ids[:, :after], ids[:, after + has_stop :]], dim=1)
        logits = [
            model.decoded(model.encoded(read, torch.zeros_like(read), None))[0, place].log_softmax(
                -1
            )
            for model, read in ((first.model, unstopped), (free.model, ids))
        ]
        expected.append((logits[0].exp() * (logits[0] - logits[1])).sum().item())
    assert words_apart(free)[0] == pytest.approx(np.mean(expected), rel=1e-3)


def test_without_targets_the_reference_is_the_teacher_of_texts_alone(trainer, tokenizer, tmp_path):
    taught = trainer("taught", steps=60)
    taught.run()
    save_for_transformers(tokenizer, tmp_path / "tokenizer")
    export(taught.folder, tmp_path / "tokenizer", tmp_path / "bert")
    own = trainer(
        "own", teacher_vectors=False, reference=str(tmp_path / "bert"), cycle=("sentences:32",)
    )
    assert own.held_out_cosine() < 0.3
    own.run()
    assert own.held_out_cosine() > 0.7
    # A prompt does not change the vector that the reference gives to the text alone.
    batch = own.batch(7000)
    prompted = (batch.ids == MASK).any(1)
    assert prompted.any()

    def vectors(model, ids, attended):
        return model.sentence(model.encoded(ids, torch.zeros_like(ids), attended), batch.is_text)

    with torch.no_grad():
        found = vectors(own.model, batch.ids, batch.attended)
        wanted = vectors(own.reference, *batch.alone)
    assert functional.cosine_similarity(found, wanted)[prompted].mean() > 0.6
    last = batch.ids.gather(1, batch.attended.sum(1)[:, None] - 2)[:, 0]
    has_stop = prompted & (last == tokenizer.get_vocab()["."])
    assert 0 < has_stop.sum() < prompted.sum()
    lengths = (batch.is_text.sum(1) + 2, batch.attended.sum(1) - has_stop.long())
    for (ids, attended), length in zip((batch.alone, batch.unstopped), lengths, strict=True):
        ends = attended.sum(1)
        assert (ids.gather(1, ends[:, None] - 1) == SEP).all()
        assert (ends == length).all()


def test_a_broken_run_with_sentences_and_pairs_ends_as_an_unbroken_one(trainer):
    whole = trainer("whole", steps=20)
    whole.run()
    ticks = iter(range(1000))
    trainer("broken", clock=lambda: next(ticks), steps=20).run(stop_after=9)
    again = trainer("broken", steps=20)
    assert 0 < again.step < 20
    again.run()
    for name, value in whole.model.state_dict().items():
        assert value.equal(again.model.state_dict()[name])


def test_the_exported_folder_has_the_sentence_head(trainer, tokenizer, tmp_path):
    run = trainer(steps=8)
    run.run()
    save_for_transformers(tokenizer, tmp_path / "tokenizer")
    export(run.folder, tmp_path / "tokenizer", tmp_path / "bert")
    kinds = [
        m["type"].split(".")[-1] for m in json.loads((tmp_path / "bert/modules.json").read_text())
    ]
    assert kinds == ["Transformer", "Pooling", "Dense"]
    head = read_model(run.folder).sentence.dense
    weights = read_weights(tmp_path / "bert")
    torch.testing.assert_close(
        weights["sentence.dense.weight"].float(), head.weight.data, atol=1e-3, rtol=1e-3
    )
    second = trainer("second", start=str(tmp_path / "bert"), steps=1)
    torch.testing.assert_close(
        second.model.sentence.dense.weight.data, head.weight.data, atol=1e-3, rtol=1e-3
    )


def test_the_commands(teacher, tokenizer, tmp_path):
    corpus, bert = tmp_path / "corpus", tmp_path / "vocabulary"
    corpus.mkdir()
    with lzma.open(corpus / "train-00.txt.xz", "wt") as file:
        file.writelines(story + "\n" for story in stories(30))
    save_for_transformers(tokenizer, bert)
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    for name in SETS:
        write_pairs(
            pairs / f"{name}.jsonl.gz",
            [{"text_a": "the cat", "text_b": "a cat", "label": "entailment"}] * 3,
        )
    run("pairs", pairs, bert, tmp_path / "pairs.npz")
    assert len(LabelledPairs.load(tmp_path / "pairs.npz").labels) == 3 * len(SETS)
    run("tokens", corpus, bert, tmp_path / "tokens", "--workers", 1)
    more = ["--tokenizer", bert, "--teacher", teacher, "--workers", 1, "--device", "cpu"]
    said = run("targets", corpus, *more, "--output", tmp_path / "targets")
    assert "texts tokenized" in said
    targets = np.load(tmp_path / "targets/targets.npy")
    assert len(targets) == len(np.load(tmp_path / "targets/lengths.npy"))
    assert targets.shape[1] == 32
    tiny = ["--width", 32, "--layers", 2, "--heads", 2, "--tokens-a-step", 512, "--steps", 4]
    cycle = ["--cycle", "sentences:64", "pairs", "text:32"]
    inputs = ["--targets", tmp_path / "targets", "--pairs", tmp_path / "pairs.npz"]
    run("train", tmp_path / "tokens", bert, tmp_path / "run", *inputs, *tiny, *cycle)
    run("export", tmp_path / "run", bert, tmp_path / "bert")
    assert (tmp_path / "bert/2_Dense/model.safetensors").is_file()


def run(module, *arguments):
    command = [sys.executable, "-m", f"pretraining.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout
