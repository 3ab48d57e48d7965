"""Pre-training itself, with a tiny model on a CPU."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForMaskedLM, AutoTokenizer

from cptuning.backbone import load_backbone
from cptuning.backbone.packing import unpack
from pretraining import evaluate
from pretraining.batches import Drawer
from pretraining.export import as_transformers, export, pack_into_package, read_model
from pretraining.model import MaskedLM, Shape, from_transformers, to_transformers
from pretraining.optimizer import orthogonalised
from pretraining.tokens import Tokens, tokenize
from pretraining.train import CHECKPOINT, Recipe, Trainer, losses
from pretraining.vocabulary import learn_vocabulary, save_for_transformers

PROMPT = (
    "These are the same, part of it, similar, connected, related or different? Yes, no, then, also."
)
TINY = {
    "width": 32,
    "layers": 2,
    "heads": 2,
    "tokens_a_step": 512,
    "cycle": ("text:32", "relations", "text:64"),
    "sentence_length": 64,
}


def texts():
    """Small stories whose words depend on each other."""
    rng = np.random.default_rng(0)
    animals = ("cat", "dog", "bird", "fish")
    places = ("house", "garden", "tree", "water")
    stories = []
    for _ in range(200):
        which = rng.integers(4)
        animal, place = animals[which], places[which]
        stories.append(
            f"The {animal} was in the {place}. It liked the {place} very much. "
            f"Everybody saw the {animal} there. {PROMPT}"
        )
    return stories


@pytest.fixture(scope="module")
def tokenizer():
    return learn_vocabulary(texts(), size=300)


@pytest.fixture(scope="module")
def tokens(tokenizer):
    return tokenize(texts(), tokenizer)


@pytest.fixture
def trainer(tokens, tokenizer, tmp_path):
    def make(folder="run", clock=None, **changes):
        recipe = Recipe(**TINY | {"steps": 30, "learning_rate": 5e-3} | changes)
        drawer = Drawer(tokens, tokenizer.get_vocab(), device="cpu", seed=recipe.seed)
        more = {} if clock is None else {"clock": clock}
        return Trainer(recipe, drawer, tmp_path / folder, device="cpu", **more)

    return make


def weights(trainer):
    return {n: t.clone() for n, t in trainer.model.state_dict().items()}


def same(a, b):
    return all(a[n].equal(b[n]) for n in a) and a.keys() == b.keys()


def test_the_tokens_are_the_documents_in_a_row(tokens, tokenizer, tmp_path):
    assert len(tokens.starts) == len(tokens.documents) == 200 * 5
    first = tokenizer.decode(tokens.ids[: tokens.starts[1]].tolist())
    assert texts()[0].lower().startswith(first.replace(" .", "."))
    tokens.save(tmp_path)
    again = Tokens.joined([Tokens.load(tmp_path), Tokens.load(tmp_path)])
    assert len(again.ids) == 2 * len(tokens.ids)
    assert again.documents[-1] == 2 * 200 - 1
    assert again.starts[len(tokens.starts)] == len(tokens.ids)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_the_losses_fall(trainer, optimizer):
    run = trainer(steps=90, optimizer=optimizer)
    with torch.no_grad():
        before = [losses(run.model, run.batch(step)) for step in (900, 901)]
    run.run()
    with torch.no_grad():
        after = [losses(run.model, run.batch(step)) for step in (900, 901)]
    assert after[0][0] < 0.6 * before[0][0]
    assert after[1][0] < 0.6 * before[1][0]
    assert after[1][1] < 0.9 * before[1][1]
    assert after[0][1] == before[0][1] == 0  # running text has no pairs
    lines = [json.loads(x) for x in (run.folder / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [50]
    assert lines[0]["tokens"] == 50 * 512


def test_a_run_that_stops_goes_on_as_if_it_had_not(trainer):
    whole = trainer("whole")
    whole.run()
    ticks = iter(range(1000))
    trainer("broken", clock=lambda: next(ticks)).run(stop_after=11)
    again = trainer("broken")
    assert 0 < again.step < 30
    again.run()
    assert again.step == whole.step == 30
    assert same(weights(again), weights(whole))


def test_the_rate_follows_the_seconds_where_they_are_the_budget(trainer):
    ticks = iter(range(1000))
    run = trainer(steps=0, seconds=20.0, clock=lambda: next(ticks))
    run.run()
    assert run.step == 19  # one look at the clock to begin, one a step
    assert run.recipe.rate_at(1.0) == 0


def test_a_folder_with_another_recipe_is_left_alone(trainer):
    run = trainer(steps=2)
    run.run()
    before = (run.folder / CHECKPOINT).read_bytes()
    with pytest.raises(SystemExit, match="another recipe"):
        trainer(steps=3)
    assert (run.folder / CHECKPOINT).read_bytes() == before


def test_the_export_is_the_model_that_was_trained(trainer, tokenizer, tmp_path):
    run = trainer()
    run.run()
    save_for_transformers(tokenizer, tmp_path / "tokenizer")
    export(run.folder, tmp_path / "tokenizer", tmp_path / "bert")
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "bert", dtype=torch.float32)
    exact = as_transformers(read_model(run.folder))
    batch = run.batch(1)
    inputs = {
        "input_ids": batch.ids,
        "token_type_ids": batch.types,
        "attention_mask": batch.attended.long(),
    }
    index = batch.columns[:, :, None].expand(-1, -1, tokenizer.get_vocab_size())
    with torch.no_grad():
        ours = run.model(batch.ids, batch.types, batch.attended, batch.columns)
        theirs = exact(**inputs).logits.gather(1, index)
        rounded = model.eval()(**inputs).logits.gather(1, index)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours, rounded, atol=3e-2, rtol=3e-2)  # float16 file
    loaded = AutoTokenizer.from_pretrained(tmp_path / "bert")
    ids = loaded("The cat", "the dog")
    said = " ".join(loaded.convert_ids_to_tokens(ids["input_ids"]))
    assert said == "[CLS] the cat [SEP] the dog [SEP]"
    assert ids["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]
    assert load_backbone(tmp_path / "bert").has_head


def test_the_package_gets_the_same_weights_packed(trainer, tokenizer, tmp_path):
    run = trainer(steps=2)
    run.run()
    save_for_transformers(tokenizer, tmp_path / "tokenizer")
    export(run.folder, tmp_path / "tokenizer", tmp_path / "bert")
    (tmp_path / "package").mkdir()
    pack_into_package(tmp_path / "bert", tmp_path / "package")
    packed = unpack(load_file(tmp_path / "package/model.packed.safetensors"))
    plain = load_file(tmp_path / "bert/model.safetensors")
    head = load_file(tmp_path / "bert/2_Dense/model.safetensors")
    plain |= {name.replace("linear", "sentence.dense"): value for name, value in head.items()}
    assert packed.keys() == plain.keys()
    for name, value in plain.items():
        assert (packed[name] - value.float()).abs().max() <= value.abs().max() / 120


def test_a_run_can_start_from_the_export_of_another(trainer, tokenizer, tmp_path):
    first = trainer("first")
    first.run()
    save_for_transformers(tokenizer, tmp_path / "tokenizer")
    export(first.folder, tmp_path / "tokenizer", tmp_path / "bert")
    second = trainer("second", start=str(tmp_path / "bert"), seed=1)
    for name, value in weights(first).items():
        torch.testing.assert_close(second.model.state_dict()[name], value, atol=1e-3, rtol=1e-3)
    assert second.step == 0


def test_names_go_to_transformers_and_back():
    model = MaskedLM(Shape(50, 16, 2, 2, 32, 20))
    there = to_transformers(model.encoder_state())
    assert same(from_transformers(there, model), model.encoder_state())


def test_a_move_of_muon_has_singular_values_near_one():
    torch.manual_seed(0)
    for shape in ((3, 32, 32), (2, 64, 16), (2, 16, 64)):
        matrices = torch.randn(shape)
        values = torch.linalg.svdvals(orthogonalised(matrices).float())
        assert values.min() > 0.3
        assert values.max() < 1.3
        u, _, v = torch.linalg.svd(matrices, full_matrices=False)
        cosine = torch.nn.functional.cosine_similarity(
            orthogonalised(matrices).float().flatten(1), (u @ v).flatten(1)
        )
        assert cosine.min() > 0.9


def test_stacked_matrices_move_as_if_they_stood_alone():
    from pretraining.optimizer import Muon

    torch.manual_seed(0)
    gradient = torch.randn(24, 8)
    stacked = torch.nn.Parameter(torch.zeros(24, 8))
    alone = [torch.nn.Parameter(torch.zeros(8, 8)) for _ in range(3)]
    for parameters, pieces in (([stacked], 3), (alone, 1)):
        optimizer = Muon([{"params": parameters, "pieces": pieces}], momentum=0.9, decay=0.0)
        optimizer.param_groups[0]["lr"] = 1.0
        for parameter, part in zip(parameters, gradient.chunk(len(parameters)), strict=True):
            parameter.grad = part.clone()
        optimizer.step()
    assert stacked.abs().max() > 0
    torch.testing.assert_close(stacked.detach(), torch.cat([p.detach() for p in alone]))


def test_the_loss_a_character_is_the_one_computed_by_hand(
    trainer, tokenizer, tmp_path, monkeypatch
):
    run = trainer(steps=20)
    run.run()
    save_for_transformers(tokenizer, tmp_path / "tokenizer")
    export(run.folder, tmp_path / "tokenizer", tmp_path / "bert")
    monkeypatch.setattr(evaluate, "LENGTHS", (16, 32))
    held_out = tmp_path / "heldout.jsonl"
    held_out.write_text("".join(json.dumps({"source": "s", "text": t}) + "\n" for t in texts()[:4]))
    backbone = load_backbone(tmp_path / "bert")
    documents = evaluate.long_documents(held_out, backbone)
    assert [len(ids) for _, ids in documents] == [30] * 4
    words = [backbone.tokenizer.decode(ids).replace(" ", "") for _, ids in documents]
    held = evaluate.characters_a_token(documents, backbone)
    assert held == pytest.approx(sum(map(len, words)) / 120)
    total = evaluate.loss_at(16, documents, backbone, "cpu")
    rng, nats, characters = np.random.default_rng(0), 0.0, 0
    rows = [[2, *ids[s : s + 14], 3] for _, ids in documents for s in (0, 14)]
    chosen = rng.random((len(rows), 16)) < evaluate.MASKED
    for row, picked in zip(rows, chosen, strict=True):
        places = [i for i in range(1, 15) if picked[i]]
        ids = torch.tensor([[4 if i in places else t for i, t in enumerate(row)]])
        with torch.no_grad():
            logits = backbone.model(input_ids=ids).logits[0].log_softmax(-1)
        for place in places:
            nats -= float(logits[place, row[place]])
            piece = Tokenizer.from_file(str(tmp_path / "bert/tokenizer.json")).id_to_token(
                row[place]
            )
            characters += len(piece.removeprefix("##"))
    assert total["all"].characters == total["s"].characters == characters
    assert total["all"].nats == pytest.approx(nats, rel=1e-4)


def test_the_evaluation_as_a_command(trainer, tokenizer, tmp_path, monkeypatch, capsys):
    run = trainer(steps=1)
    run.run()
    save_for_transformers(tokenizer, tmp_path / "tokenizer")
    export(run.folder, tmp_path / "tokenizer", tmp_path / "bert")
    monkeypatch.setattr(evaluate, "LENGTHS", (16, 32))
    held_out = tmp_path / "heldout.jsonl"
    held_out.write_text(json.dumps({"source": "s", "text": texts()[0]}) + "\n")
    monkeypatch.setattr("sys.argv", ["evaluate", str(held_out), str(tmp_path / "bert")])
    evaluate.main()
    said = capsys.readouterr().out
    assert "length  16: all" in said
    assert "the capital of france is [MASK]." in said
