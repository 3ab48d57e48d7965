"""LM-BFF's searches against brute force, its candidates, its demonstrations."""

from itertools import product

import numpy as np
import pytest
import torch

import cptuning
from cptuning import make_classifier
from cptuning.backbone import PromptedEncoder, TextEncoder, layout_for, load_backbone
from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.methods.evaluation_log import EvaluationLog
from cptuning.methods.label_search import best_combinations, mask_log_probabilities, search_words
from cptuning.methods.lm_bff import LMBFF, fit_candidates
from cptuning.methods.t5_templates import T5, _questions, _written, write_templates
from cptuning.methods.template_search import PLACES, _Search, _unusable, search_templates
from cptuning.methods.training import LabelledExamples
from cptuning.prompting import Template
from cptuning.training import Callback, Score
from tests.methods.toys import (
    ARCHITECTURES,
    WORDS,
    label_words,
    learner_of,
    rival,
    settings_of,
    split_of,
    toy,
    training_of,
)
from tests.tiny import save_t5


@pytest.fixture(scope="session")
def t5(tmp_path_factory):
    return save_t5(tmp_path_factory.mktemp("t5"))


def encoder_maker(backbone):
    module = PromptedEncoder(backbone, np.zeros(0, dtype=np.int64)).eval()

    def encoder_for(template, masks=1):
        parsed = Template.parse(template)
        layout = layout_for(backbone, parsed, 64, trainable_words=False, masks=masks)
        return TextEncoder(layout, module, backbone)

    return encoder_for


# Auto-L


def slow_ranking(said, labels, choices):
    ranked = []
    for combination in product(*choices):
        if len(set(combination)) == len(combination):
            scores = said[:, combination]
            likelihood = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
            accuracy = np.sum(scores.argmax(axis=1) == labels)
            ranked.append((accuracy, likelihood[np.arange(len(labels)), labels].sum(), combination))
    return sorted(ranked, key=lambda item: (-item[0], -item[1]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_combinations_are_ranked_as_brute_force_ranks_them(n_classes):
    rng = np.random.default_rng(0)
    said = rng.normal(size=(12, 9)).astype(np.float32)
    labels = rng.integers(0, n_classes, size=12)
    choices = [rng.choice(9, size=4, replace=False).tolist() for _ in range(n_classes)]
    found = best_combinations(said, labels, choices, most=10_000)
    expected = slow_ranking(said, labels, choices)
    assert len(found) == len(expected)
    assert [tuple(row) for row in found.tolist()] == [row[2] for row in expected]


def test_many_classes_are_searched_within_the_cap_and_come_out_well():
    rng = np.random.default_rng(1)
    n_classes, n_words = 20, 40
    labels = np.repeat(np.arange(n_classes), 3)
    said = rng.normal(size=(60, n_words)).astype(np.float32)
    said[np.arange(60), labels] += 3  # word i speaks for class i
    choices = [[*rng.permutation(n_words)[:10].tolist(), c] for c in range(n_classes)]
    choices = [list(dict.fromkeys(words)) for words in choices]
    found = best_combinations(said, labels, choices, most=500)
    assert 0 < len(found) <= 500
    assert all(len(set(row)) == n_classes for row in found.tolist())
    assert np.mean(found[0] == np.arange(n_classes)) > 0.7


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_words_are_whole_words_and_the_first_ones_are_the_most_accurate(steady, architecture):
    encoder = encoder_maker(load_backbone(steady[architecture]))("{a} It was [MASK].")
    data = split_of().train
    found = search_words(encoder, data, 2, words_per_class=8, combinations=1000)
    said = mask_log_probabilities(encoder, data)
    assert said.shape == (6, encoder.layout.vocabulary)
    np.testing.assert_allclose(np.exp(said).sum(axis=1), np.ones(6), rtol=1e-4)
    ids = [[encoder.layout.token_ids(word) for word in words] for words in found]
    assert all(len(one) == 1 for row in ids for one in row)
    accuracy = [np.mean(said[:, [i for [i] in row]].argmax(axis=1) == data.labels) for row in ids]
    assert accuracy == sorted(accuracy, reverse=True)
    assert accuracy[0] >= 0.5


def test_a_search_without_enough_words_says_so(steady):
    encoder = encoder_maker(load_backbone(steady["bert"]))("{a} It was [MASK].")
    with pytest.raises(CPTuningError, match="raise words_per_class"):
        search_words(encoder, split_of(6).train, 6, words_per_class=1, combinations=10)


def test_auto_l_needs_no_words_of_the_user(steady):
    texts, labels = toy(2, pair=False)
    classifier = rival("lm-bff-l", steady["bert"], steps=0, label_words=None)
    assert set(classifier.fit(texts, labels).settings_.label_words) == {"label0", "label1"}


# Auto-T


def template_score(encoder_for, source, data, words):
    """The mean log-probability a token, filling the masks around the word from left to right."""
    encoder = encoder_for(source)
    layout, module = encoder.layout, encoder.module
    mask = layout.special.mask
    totals = []
    for encoding, label in zip(layout.encode(data.examples), data.labels, strict=True):
        target = encoding.ids.copy()
        target[encoding.output] = words[label][0]
        places = [i for i in range(len(target)) if not encoding.is_text[i]]
        own = [i for i in places if target[i] not in special_ids(layout) and i != encoding.output]
        ids = target.copy()
        ids[own] = mask
        total = 0.0
        for place in own:
            logits = module.model(input_ids=torch.as_tensor(ids)[None]).logits[0, place]
            total += logits.log_softmax(-1)[target[place]].item()
            ids[place] = target[place]
        totals.append(total / len(own))
    return float(np.mean(totals))


def special_ids(layout):
    special = layout.special
    return {*special.prefix, *special.between, *special.suffix}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_masked_lm_finds_better_templates_than_chance(steady, architecture):
    encoder_for = encoder_maker(load_backbone(steady[architecture]))
    data = split_of().train
    layout = encoder_for("{a} [MASK]").layout
    words = [tuple(layout.token_ids(word)) for word in WORDS[:2]]
    found = search_templates(encoder_for, data, words, beam=3, count=6)
    assert 0 < len(found) <= 6
    assert len(set(found)) == len(found)
    for source in found:
        assert not Template.parse(source).is_pair
    best = template_score(encoder_for, found[0], data, words)
    assert best > template_score(encoder_for, "{a} it movie [MASK] train .", data, words)


def test_a_beam_of_everything_finds_the_very_best_filling(steady):
    """One mask before the word: brute force over the vocabulary is the beam's first step."""
    encoder_for = encoder_maker(load_backbone(steady["bert"]))
    data = split_of().train
    layout = encoder_for("{a} [MASK]").layout
    words = [tuple(layout.token_ids(word)) for word in WORDS[:2]]
    search = _Search(encoder_for, PLACES[False][0], 1, 0, data, words)
    best = next(iter(search.best(5, _unusable(search.encoder))))
    expected = template_score(encoder_for, best.source, data, words)
    assert best.score == pytest.approx(expected, abs=1e-4)
    for word in ("movie", "train", "it", "."):
        assert template_score(encoder_for, f"{{a}} {word} [MASK]", data, words) <= expected + 1e-5


def test_templates_of_pairs_stand_between_the_texts(steady):
    encoder_for = encoder_maker(load_backbone(steady["bert"]))
    words = [tuple(encoder_for("{a} [MASK]").layout.token_ids(word)) for word in WORDS[:2]]
    found = search_templates(encoder_for, split_of(pair=True).train, words, beam=2, count=3)
    for source in found:
        assert source.startswith("{a:chopped}")
        assert source.endswith("[JOIN] {b:lowered}")
        assert Template.parse(source).is_pair


def test_words_of_several_tokens_stand_whole_in_the_middle(steady):
    encoder_for = encoder_maker(load_backbone(steady["bert"]))
    layout = encoder_for("{a} [MASK]").layout
    words = [tuple(layout.token_ids("great movie")), tuple(layout.token_ids("no"))]
    assert search_templates(encoder_for, split_of().train, words, beam=2, count=2)


@pytest.mark.parametrize("pair", [False, True])
def test_a_t5_writes_templates_by_likelihood_over_all_examples(t5, pair):
    model = T5.load(str(t5), torch.device("cpu"))
    data = split_of(pair=pair).train
    found = write_templates(model, data, WORDS[:2], beam=30, longest=5, count=4)
    assert 0 < len(found) <= 4
    assert all(Template.parse(source).is_pair == pair for source in found)


def test_what_a_t5_writes_is_scored_by_its_likelihood_after_every_example(t5):
    model = T5.load(str(t5), torch.device("cpu"))
    data = split_of().train
    best = _written(model, PLACES[False][0], data, WORDS[:2], beam=8, longest=5)[0]
    gap, border, end = model.sentinels
    assert best.ids[0] == gap
    assert best.ids.count(border) == 1
    assert best.ids[-1] in (end, model.tokenizer.eos_token_id)
    scores = []
    for text, label in zip(data.examples, data.labels, strict=True):
        question = f"{text} <extra_id_0> {WORDS[label]} <extra_id_1>"
        logits = model.model(
            **model.tokenizer(question, return_tensors="pt"),
            decoder_input_ids=torch.tensor([[0, *best.ids]]),
        ).logits[0]
        said = logits.log_softmax(-1)
        scores.append(sum(said[i + 1, token].item() for i, token in enumerate(best.ids[1:])))
    assert best.score == pytest.approx(np.mean(scores), abs=1e-3)


def test_a_t5s_next_token_is_the_mean_over_the_examples(t5):
    model = T5.load(str(t5), torch.device("cpu"))
    texts = ["a great movie", "the red train is late", "yes"]
    prefix = model.sentinels[:1]
    together = model.said_next(model.encoded(texts), prefix)
    each = [
        model.model(
            **model.tokenizer(text, return_tensors="pt"),
            decoder_input_ids=torch.tensor([[0, *prefix]]),
        )
        .logits[0, -1]
        .log_softmax(-1)
        for text in texts
    ]
    torch.testing.assert_close(together, torch.stack(each).mean(dim=0), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("pair", [False, True])
def test_a_long_text_does_not_push_the_gaps_out_of_a_t5s_sight(t5, pair, monkeypatch):
    model = T5.load(str(t5), torch.device("cpu"))
    short, long = "The great movie !", "the red train " * 267
    texts = Examples((long, short), (short, long) if pair else None)
    data = LabelledExamples(texts, np.array([0, 1]))
    read = []
    plain = type(model.model.get_encoder()).forward

    def watched(self, input_ids=None, **others):
        if self is model.model.get_encoder():
            read.extend(input_ids)
        return plain(self, input_ids, **others)

    monkeypatch.setattr(type(model.model.get_encoder()), "forward", watched)
    for place in PLACES[pair]:
        read.clear()
        model.encoded(_questions(model, place, data, WORDS[:2]))
        for ids, word, own in zip(read, WORDS[:2], data.examples, strict=True):
            first, last = (ids.tolist().index(mark) for mark in model.sentinels[:2])
            assert model.tokenizer.decode(ids[first + 1 : last]).strip() == word
            # As much of the long text as fits, and all of the short one.
            if pair or long in own:
                assert 505 <= int((ids != model.tokenizer.pad_token_id).sum()) <= 512
            if pair:
                kept = "The great movie" if own[0] == short else "the great movie !"
                assert kept in model.tokenizer.decode(ids)


def test_something_that_is_no_t5_is_refused(steady, tmp_path):
    with pytest.raises(CPTuningError, match="neither the folder of a T5"):
        T5.load(str(steady["bert"]), torch.device("cpu"))


# Candidates


def test_candidates_are_tuned_and_the_best_on_dev_is_trained(steady, t5):
    texts, labels = toy(2, pair=False)
    classifier = rival(
        "lm-bff-tl",
        steady["bert"],
        generator=str(t5),
        beam=20,
        n_templates=2,
        n_mappings=2,
        candidate_steps=3,
        steps=6,
        evaluate_every=3,
    ).fit(texts, labels, X_dev=texts, y_dev=labels)
    facts = classifier.training_
    assert facts["search"] == f"Auto-T ({t5}) + Auto-L"
    assert facts["candidates"] == len(facts["tried"]) == 4
    assert facts["candidate_steps"] == 3
    best = max(facts["tried"], key=lambda one: one["held_out_accuracy"])
    chosen = {"template": classifier.settings_.template}
    assert chosen["template"] in {one["template"] for one in facts["tried"]}
    same = [one for one in facts["tried"] if one["template"] == chosen["template"]]
    assert any(one["held_out_accuracy"] == best["held_out_accuracy"] for one in same)


def test_without_held_out_examples_the_first_candidate_is_taken_and_none_is_tuned(steady):
    texts, labels = toy(2, pair=False)
    classifier = rival("lm-bff-l", steady["bert"], n_mappings=3, steps=1, validation="none")
    facts = classifier.fit(texts, labels).training_
    assert facts["candidates"] > 1
    assert (facts["candidate_steps"], facts["tried"]) == (0, [])


class Tunings:
    """Stands for the tunings of candidates: gives known scores, and leaves the weights changed."""

    def __init__(self, monkeypatch, folder, accuracies):
        self.backbone = load_backbone(folder)
        self.accuracies = list(accuracies)
        self.plans, self.started_from, self.words = [], [], []
        plain = LMBFF.fit

        def best_score(learner):
            self.note(learner)
            with torch.no_grad():
                for parameter in self.backbone.model.parameters():
                    parameter.add_(0.1)
            return Score(self.accuracies[len(self.plans) - 1], -1.0)

        def fit(learner):
            self.note(learner)
            return plain(learner)

        monkeypatch.setattr(LMBFF, "best_score", best_score)
        monkeypatch.setattr(LMBFF, "fit", fit)

    def note(self, learner):
        self.plans.append((learner.settings, learner.settings.batch_size))
        self.started_from.append(self.sum_of_weights())
        self.words.append(learner.settings.label_words)

    def sum_of_weights(self):
        return sum(p.double().sum().item() for p in self.backbone.model.parameters())

    def run(self, **changes):
        settings = settings_of("lm-bff-l", n_mappings=3, **{"steps": 1} | changes)
        split = split_of(dev=split_of().train)
        return fit_candidates(training_of(self.backbone, settings, split))


@pytest.mark.parametrize(
    ("accuracies", "best"),
    [((0.3, 0.8, 0.5), 1), ((0.3, 0.5, 0.8), 2), ((0.8, 0.5, 0.8), 0), ((0.5, 0.8, 0.8), 1)],
)
def test_the_candidate_of_the_best_score_is_trained(steady, monkeypatch, accuracies, best):
    tunings = Tunings(monkeypatch, steady["bert"], accuracies)
    fitted = tunings.run()
    *tried, trained = tunings.words
    assert len({tuple(words.values()) for words in tried}) == 3
    assert trained == tried[best]
    assert fitted.task.learner.settings.label_words == tried[best]
    assert [one["held_out_accuracy"] for one in fitted.facts["tried"]] == list(accuracies)


def test_every_candidate_and_the_chosen_one_start_from_the_weights_of_the_backbone(
    steady, monkeypatch
):
    tunings = Tunings(monkeypatch, steady["bert"], (0.3, 0.8, 0.5))
    untrained = tunings.sum_of_weights()
    tunings.run()
    assert tunings.started_from == [untrained] * 4


def test_candidates_are_tuned_at_their_own_rate_for_their_own_steps(steady, monkeypatch):
    tunings = Tunings(monkeypatch, steady["bert"], (0.3, 0.8, 0.5))
    tunings.run(
        learning_rate=3e-3,
        batch_size=4,
        steps=2,
        candidate_learning_rate=7e-4,
        candidate_batch_size=6,
        candidate_steps=1,
    )
    found = [(plan.learning_rate, batch, plan.steps) for plan, batch in tunings.plans]
    assert found == [(7e-4, 6, 1)] * 3 + [(3e-3, 4, 2)]


def test_the_backbones_own_search_goes_by_its_own_name(steady, tmp_path):
    texts, labels = toy(2, pair=False)
    classifier = rival("lm-bff-t", steady["bert"], steps=1).fit(texts, labels)
    assert classifier.training_["search"] == "Auto-T (MLM)"
    classifier.save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "Auto-T (MLM)" in card
    assert "lm-bff-t" in card


def test_with_nothing_held_out_the_searchs_own_favourite_is_trained(steady):
    texts, labels = toy(2, pair=False)
    classifier = rival("lm-bff-l", steady["bert"], n_mappings=3, steps=1).fit(texts, labels)
    assert classifier.training_["tried"] == []
    alone = rival("lm-bff-l", steady["bert"], n_mappings=1, steps=1).fit(texts, labels)
    assert classifier.settings_.label_words == alone.settings_.label_words


# Demonstrations


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_demonstrations_show_one_other_example_of_each_class_with_its_word(steady, architecture):
    learner = learner_of("lm-bff-l", load_backbone(steady[architecture]), demonstrations=2)
    split = split_of()
    task = learner.task(split, EvaluationLog())
    layout = learner.encoder.layout
    words = learner.head.tokens[:, 0].tolist()
    plain = task.encodings
    rows = np.array([0, 4])
    for row, encoding in zip(rows, task.labelled_encodings(rows, batch=7), strict=True):
        own = plain[row]
        assert encoding.output == own.output
        np.testing.assert_array_equal(encoding.ids[: len(own)], own.ids)
        shown = encoding.ids[len(own) :].tolist()
        assert layout.special.mask not in shown
        candidates = []
        for label in range(2):
            forms = []
            for other in np.flatnonzero(split.train.labels == label):
                if other != row:
                    ids = plain[other].ids.copy()
                    ids[plain[other].output] = words[label]
                    forms.append(ids[len(layout.special.prefix) :].tolist())
            candidates.append(forms)
        assert shown in [first + second for first in candidates[0] for second in candidates[1]]


def test_demonstrations_are_drawn_from_the_most_similar_half(steady):
    learner = learner_of("lm-bff-l", load_backbone(steady["bert"]), demonstrations=2)
    task = learner.task(split_of(), EvaluationLog())
    demonstrations = task.scorer.demonstrations
    vectors = learner.encoder.embed_encodings(task.encodings)
    lengths = [len(encoding) for encoding in task.encodings]
    seen = set()
    for batch in range(20):
        [drawn] = task.labelled_encodings(np.array([0]), batch)
        seen.add(tuple(drawn.ids[lengths[0] :].tolist()))
    others = [1, 2]  # the two of its own class; half of them is one
    nearest = max(others, key=lambda other: vectors[0] @ vectors[other])
    start = demonstrations._shown[nearest].ids.tolist()
    assert all(list(ids)[: len(start)] == start for ids in seen)


def test_a_texts_scores_are_the_mean_over_as_many_draws_as_are_asked_for(steady):
    learner = learner_of(
        "lm-bff-l", load_backbone(steady["bert"]), demonstrations=5, similar_share=1.0
    )
    scorer = learner.task(split_of(), EvaluationLog()).scorer
    plain = learner.encoder.layout.encode(Examples(("a red movie ?", "the great train")))
    draws = scorer.demonstrations.draws(plain)
    assert len(draws) == 5
    assert len({tuple(draw[0].ids.tolist()) for draw in draws}) > 1
    each = [scorer.head.scores(scorer.encoder, draw).double().numpy() for draw in draws]
    assert np.ptp(each, axis=0).max() > 1e-3
    np.testing.assert_allclose(scorer.score_encodings(plain), sum(each) / 5, atol=1e-5)


def test_a_model_with_demonstrations_learns_and_is_the_same_when_loaded(steady, tmp_path):
    texts, labels = toy(2, pair=False)
    classifier = rival("lm-bff-l", steady["bert"], demonstrations=2).fit(texts, labels)
    assert classifier.score(texts, labels) == 1.0
    classifier.save(tmp_path / "model")
    loaded = cptuning.load(tmp_path / "model")
    np.testing.assert_allclose(
        loaded.predict_proba(texts), classifier.predict_proba(texts), atol=1e-6
    )


def test_demonstrations_of_words_of_several_tokens_are_refused(steady):
    texts, labels = toy(2, pair=False)
    classifier = rival(
        "lm-bff-t",
        steady["bert"],
        n_templates=0,
        demonstrations=1,
        label_words={"label0": "great movie", "label1": "no"},
    )
    with pytest.raises(CPTuningError, match="shorter words"):
        classifier.fit(texts, labels)


def test_demonstrations_that_may_be_cut_off_are_told_of(steady, caplog):
    texts, labels = toy(2, pair=False)

    def told(texts):
        caplog.clear()
        rival("lm-bff-l", steady["bert"], n_mappings=0, demonstrations=1, steps=1).fit(
            texts, labels
        )
        return [r.getMessage() for r in caplog.records if "demonstrations" in r.getMessage()]

    assert told(texts) == []
    (said,) = told([f"{text} {'movie ' * 200}" for text in texts])
    assert "the model reads" in said
    assert "the last demonstrations are cut off" in said


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("lm-bff-t", {"template": "{a} so [MASK] ."}, ["The template"]),
        (
            "lm-bff-l",
            {"label_words": label_words(2)},
            ["The label words"],
        ),
        ("lm-bff-l", {"label_words": label_words(2), "n_mappings": 0}, []),
        ("lm-bff-tl", {"label_words": label_words(2)}, []),  # templates are made with them
    ],
)
def test_what_is_searched_for_although_it_was_given_is_told(steady, caplog, method, given, said):
    texts, labels = toy(2, pair=False)
    small = {"n_templates": 1, "n_mappings": 1, "beam": 2, "steps": 1}
    kept = {name: value for name, value in small.items() if name not in given}
    if method != "lm-bff-tl":
        kept.pop("n_mappings" if method == "lm-bff-t" else "n_templates")
    make_classifier(
        method, backbone=str(steady["bert"]), verbose=False, device="cpu", validation="none",
        **kept | {"label_words": label_words(2) if method != "lm-bff-l" else None} | given,
    ).fit(texts, labels)  # fmt: skip
    found = [r.getMessage() for r in caplog.records if "not used" in r.getMessage()]
    assert len(found) == len(said)
    assert all(one.startswith(part) for one, part in zip(found, said, strict=True))


# The search, watched and estimated


class Watcher(Callback):
    """Writes down what it is told."""

    def __init__(self):
        self.told = []

    def on_search(self, what, done, last):
        self.told.append((what, done, last))

    def on_start(self, stage, step, last):
        self.told.append(stage)

    def on_end(self, step):
        self.told.append("end")


class Logger(Callback):
    """Knows of trainings only."""

    def __init__(self):
        self.stages = []

    def on_start(self, stage, step, last):
        self.stages.append(stage)

    def on_step(self, step, losses):
        float(losses["loss"])


@pytest.mark.parametrize(
    ("method", "settings", "what", "most"),
    [
        ("lm-bff-t", {"n_templates": 2, "beam": 2}, "search: Auto-T (MLM)", 2 * 66),
        ("lm-bff-l", {"n_mappings": 2}, "search: Auto-L", 1),
        (
            "lm-bff-tl",
            {"n_templates": 2, "n_mappings": 2, "beam": 1},
            "search: Auto-T (MLM) + Auto-L",
            2 * 40 + 2,
        ),
    ],
)
def test_a_search_tells_how_far_it_is_before_the_training(steady, method, settings, what, most):
    texts, labels = toy(2, pair=False)
    watcher, logger = Watcher(), Logger()
    rival(method, steady["bert"], steps=1, callbacks=[watcher, logger], **settings).fit(
        texts, labels
    )
    searched = watcher.told[: watcher.told.index("end")]
    assert searched == [(what, done, most) for done in range(most + 1)]
    assert watcher.told[len(searched) :] == ["end", "training", "end"]
    assert logger.stages == ["training"]


def test_a_t5_tells_how_far_it_is(steady, t5):
    texts, labels = toy(2, pair=True)
    watcher = Watcher()
    rival(
        "lm-bff-t",
        steady["bert"],
        steps=1,
        callbacks=[watcher],
        generator=str(t5),
        n_templates=2,
        beam=3,
        template_tokens=5,
    ).fit(texts, labels)
    searched = watcher.told[: watcher.told.index("end")]
    # At most: what is finished early is not read on.
    assert [done for _, done, _ in searched] == list(range(len(searched)))
    assert {last for _, _, last in searched} == {1 + 4 * 3}
    assert 5 <= len(searched) <= 1 + 1 + 4 * 3


def test_an_interrupted_search_ends_what_watches_it(steady):
    class Impatient(Watcher):
        def on_search(self, what, done, last):
            super().on_search(what, done, last)
            if done == 3:
                raise KeyboardInterrupt

    texts, labels = toy(2, pair=False)
    watcher = Impatient()
    classifier = rival("lm-bff-t", steady["bert"], callbacks=[watcher], n_templates=2, beam=1)
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(texts, labels)
    assert [told[1] for told in watcher.told[:-1]] == [0, 1, 2, 3]
    assert watcher.told[-1] == "end"


@pytest.mark.parametrize("generator", [False, True])
def test_the_estimate_counts_the_search(steady, t5, monkeypatch, generator):
    """With a clock on which every reading takes a second, and nothing else takes time."""
    clock = [0.0]
    place = T5 if generator else TextEncoder
    name = "said_next" if generator else "in_batches"
    plain = getattr(place, name)

    def slow(*arguments):
        clock[0] += 1
        return plain(*arguments)

    monkeypatch.setattr(place, name, slow)
    for module in ("candidate_search", "t5_templates", "learner"):
        monkeypatch.setattr(f"cptuning.methods.{module}.perf_counter", lambda: clock[0])
    texts, labels = toy(2, pair=True)
    settings = {"n_templates": 2, "beam": 2, "template_tokens": 5, "steps": 1}
    settings |= {"generator": str(t5)} if generator else {}
    found = rival("lm-bff-t", steady["bert"], **settings).estimate_seconds(texts, labels)
    assert found == (1 + 4 * 2 if generator else 66)
