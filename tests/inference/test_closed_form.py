"""Linear discriminant analysis, against matrix inverses and refits."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cptuning.data import Examples, LabelSpace, stratified_sample
from cptuning.inference import EmbeddingPredictor, SecondLook, SupportSet, class_scores, closed_form
from cptuning.inference.calibration import fit_temperature, log_losses
from cptuning.inference.closed_form import SHRINKAGES, DiscriminantAnalysis


def unit_rows(n, d, seed, shift=0.5):
    """Embeddings that share a direction, as those of most encoders do."""
    rows = np.random.default_rng(seed).normal(size=(n, d)) + shift
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@st.composite
def labelled(draw, least=2):
    """Unit rows, more or fewer than dimensions, of two to four classes, some repeated."""
    labels = draw(st.lists(st.integers(0, 3), min_size=least, max_size=16))
    _, labels = np.unique([0, 1, *labels], return_inverse=True)
    rows = unit_rows(len(labels), draw(st.sampled_from([3, 6, 40])), draw(st.integers(0, 99)))
    if draw(st.booleans()):
        rows[-1] = rows[0]
    return rows, labels


shrinkages = st.sampled_from(SHRINKAGES)


def slow_scores(rows, labels, shrinkage, query):
    """The scores of a query as the docstring has them, with an inverse and a loop over classes."""
    classes = np.unique(labels)
    means = [rows[labels == c].mean(axis=0) for c in classes]
    residuals = rows - np.array(means)[np.searchsorted(classes, labels)]
    scatter, size = residuals.T @ residuals, rows.shape[1]
    t = np.trace(scatter) / size
    metric = np.eye(size)
    if t > 1e-9:
        metric = shrinkage * t * np.linalg.inv((1 - shrinkage) * scatter + shrinkage * t * metric)
    covariance = scatter / max(len(rows) - len(classes), 1)
    scores = []
    for c, mean in zip(classes, means, strict=True):
        too_long = np.trace(metric @ covariance) / (labels == c).sum()
        scores.append(-((query - mean) @ metric @ (query - mean) - too_long) / 2)
    variance = np.mean(np.sum((rows - rows.mean(axis=0)) ** 2, axis=1))
    return (np.array(scores) - np.mean(scores)) / (variance if variance > 1e-9 else 1)


@given(labelled(), shrinkages)
def test_scores_are_those_of_the_formula(data, shrinkage):
    rows, labels = data
    queries = unit_rows(3, rows.shape[1], seed=100)
    expected = [slow_scores(rows, labels, shrinkage, query) for query in queries]
    found = DiscriminantAnalysis(rows, labels).discriminants(shrinkage).scores(queries)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@given(labelled(), shrinkages)
def test_leave_one_out_answers_are_those_of_refits(data, shrinkage):
    rows, labels = data
    analysis = DiscriminantAnalysis(rows, labels)
    found = analysis.leave_one_out(shrinkage)
    counts = np.bincount(labels)
    assert analysis.left_out.tolist() == [i for i, label in enumerate(labels) if counts[label] > 1]
    for row, scores in zip(analysis.left_out, found, strict=True):
        others = np.arange(len(rows)) != row
        refitted = DiscriminantAnalysis(rows[others], labels[others]).discriminants(shrinkage)
        np.testing.assert_allclose(scores, refitted.scores(rows[row]), atol=1e-8)
        slow = slow_scores(rows[others], labels[others], shrinkage, rows[row])
        np.testing.assert_allclose(scores, slow, atol=1e-8)


@st.composite
def weighted(draw):
    """The same, and whole weights."""
    rows, labels = draw(labelled())
    weights = draw(st.lists(st.integers(1, 4), min_size=len(rows), max_size=len(rows)))
    return rows, labels, np.array(weights, float)


def repeated(rows, labels, weights):
    times = weights.astype(int)
    return np.repeat(rows, times, axis=0), np.repeat(labels, times)


@given(weighted(), shrinkages)
def test_whole_weights_count_as_copies(data, shrinkage):
    rows, labels, weights = data
    queries = unit_rows(3, rows.shape[1], seed=100)
    found = DiscriminantAnalysis(rows, labels, weights).discriminants(shrinkage).scores(queries)
    copies = DiscriminantAnalysis(*repeated(rows, labels, weights))
    np.testing.assert_allclose(found, copies.discriminants(shrinkage).scores(queries), atol=1e-8)
    expected = [slow_scores(*repeated(rows, labels, weights), shrinkage, q) for q in queries]
    np.testing.assert_allclose(found, expected, atol=1e-8)


@given(weighted(), shrinkages)
def test_weighted_leave_one_out_answers_are_those_of_weighted_refits(data, shrinkage):
    rows, labels, weights = data
    weights = weights / 2  # Halves, so that they are no numbers of copies.
    analysis = DiscriminantAnalysis(rows, labels, weights)
    for row, scores in zip(analysis.left_out, analysis.leave_one_out(shrinkage), strict=True):
        others = np.arange(len(rows)) != row
        refitted = DiscriminantAnalysis(rows[others], labels[others], weights[others])
        np.testing.assert_allclose(
            scores, refitted.discriminants(shrinkage).scores(rows[row]), atol=1e-8
        )


@st.composite
def described(draw):
    """Examples, followed by descriptions of some of their classes, which may weigh 0."""
    rows, labels = draw(labelled())
    n = len(rows)
    more = draw(st.lists(st.integers(0, labels.max()), min_size=1, max_size=4))
    rows = np.concatenate([rows, unit_rows(len(more), rows.shape[1], seed=7)])
    weights = np.ones(len(rows))
    weights[n:] = draw(st.sampled_from([0.0, 0.5, 1.0, 4.0]))
    return rows, np.concatenate([labels, more]), weights, np.arange(len(rows)) >= n


@given(described(), shrinkages)
def test_descriptions_are_never_left_out_and_serve_whoever_is(data, shrinkage):
    rows, labels, weights, is_description = data
    analysis = DiscriminantAnalysis(rows, labels, weights, is_description)
    assert not is_description[analysis.left_out].any()
    found = analysis.leave_one_out(shrinkage)
    for row, scores in zip(analysis.left_out, found, strict=True):
        others = np.flatnonzero((np.arange(len(rows)) != row) & (weights > 0))
        if labels[row] not in labels[others]:
            np.testing.assert_array_equal(scores, 0)
            continue
        refitted = analysis.restricted(others).discriminants(shrinkage).scores(rows[row][None])[0]
        present = np.unique(labels)
        np.testing.assert_allclose(scores[present], refitted[present], atol=1e-8)


@given(described(), shrinkages)
def test_a_description_is_one_row_however_much_it_weighs(data, shrinkage):
    """The noise of a class mean, as the docstring has it, in a slow loop."""
    rows, labels, weights, is_description = data
    query = unit_rows(1, rows.shape[1], seed=100)
    found = DiscriminantAnalysis(rows, labels, weights, is_description)
    as_copies = DiscriminantAnalysis(rows, labels, weights)
    difference = (
        found.discriminants(shrinkage).scores(query)
        - as_copies.discriminants(shrinkage).scores(query)
    )[0]
    metric, residuals = np.eye(rows.shape[1]), np.zeros_like(rows)
    for row, label in enumerate(labels):
        own = labels == label
        residuals[row] = rows[row] - np.average(rows[own], axis=0, weights=weights[own])
    scatter = (residuals * weights[:, None]).T @ residuals
    t = np.trace(scatter) / len(metric)
    if t > 1e-9:
        metric = shrinkage * t * np.linalg.inv((1 - shrinkage) * scatter + shrinkage * t * metric)
    classes = np.unique(labels)
    totals = np.array([weights[labels == c].sum() for c in classes])
    q = np.zeros(len(classes))
    for label, weight, flag in zip(labels, weights, is_description, strict=True):
        q[classes.tolist().index(label)] += weight**2 if flag else weight
    within, n = np.trace(metric @ scatter), weights.sum()
    noise = within / max(n - (q / totals).sum(), 1)
    noise_of_copies = within / max(n - len(classes), 1)
    expected = (noise * q / totals**2 - noise_of_copies / totals) / 2
    centre = np.average(rows, axis=0, weights=weights)
    variance = np.average(((rows - centre) ** 2).sum(axis=1), weights=weights)
    expected = (np.array(expected) - np.mean(expected)) / (variance if variance > 1e-9 else 1)
    np.testing.assert_allclose(difference, expected, atol=1e-8)


def test_without_the_weight_of_descriptions_a_lone_example_gets_no_answer_when_left_out():
    rows = unit_rows(6, 8, seed=1)
    labels, is_description = np.array([0, 1, 1, 0, 1, 0]), np.arange(6) >= 3
    off = DiscriminantAnalysis(rows, labels, np.array([1.0, 1, 1, 0, 0, 0]), is_description)
    assert off.left_out.tolist() == [0, 1, 2]
    assert off.leave_one_out(0.5)[0].tolist() == [0.0, 0.0]
    # What it answers to others, and to new texts, is as if nothing had been described.
    plain = DiscriminantAnalysis(rows[:3], labels[:3])
    np.testing.assert_allclose(off.leave_one_out(0.5)[1:], plain.leave_one_out(0.5), atol=1e-12)
    queries = unit_rows(3, 8, seed=2)
    np.testing.assert_allclose(
        off.discriminants(0.5).scores(queries), plain.discriminants(0.5).scores(queries), atol=1e-12
    )


@given(labelled())
def test_weights_of_one_change_no_bit(data):
    rows, labels = data
    plain, ones = DiscriminantAnalysis(rows, labels), np.ones(len(rows))
    with_ones = DiscriminantAnalysis(rows, labels, ones)
    assert with_ones.shrinkage == plain.shrinkage
    assert with_ones.least_loss == plain.least_loss
    np.testing.assert_array_equal(with_ones.leave_one_out(0.5), plain.leave_one_out(0.5))


def test_weights_choose_the_shrinkage_and_the_temperature():
    labels = np.arange(24) % 2
    rows = unit_rows(24, 12, seed=3) + 0.5 * np.eye(12)[labels]
    weights = np.random.default_rng(0).uniform(0.2, 3, 24)
    analysis = DiscriminantAnalysis(rows, labels, weights)
    losses = []
    for shrinkage in SHRINKAGES:
        scores = analysis.leave_one_out(shrinkage)
        trial = analysis.trials[shrinkage]
        assert trial.temperature == fit_temperature(scores, labels, weights)
        losses.append(log_losses(scores, labels, trial.temperature))
    means = [sum(w * x for w, x in zip(weights, own, strict=True)) / sum(weights) for own in losses]
    assert analysis.least_loss == pytest.approx(min(means))
    for shrinkage, own in zip(SHRINKAGES, losses, strict=True):
        excess = own - losses[int(np.argmin(means))]
        mean = np.average(excess, weights=weights)
        variance = sum(weights * (excess - mean) ** 2) / (sum(weights) - 1)
        if mean <= (variance / sum(weights)) ** 0.5 + 1e-9:
            assert analysis.shrinkage == shrinkage
            break


@pytest.mark.parametrize(("n", "d"), [(8, 40), (30, 12), (24, 24)])
def test_the_shrinkage_is_the_largest_within_a_standard_error_of_the_best_refits(n, d):
    for seed in range(5):
        labels = np.arange(n) % 2
        rows = unit_rows(n, d, seed) + 0.5 * np.eye(d)[labels]
        losses = []
        for shrinkage in SHRINKAGES:
            scores = np.array(
                [
                    slow_scores(np.delete(rows, i, 0), np.delete(labels, i), shrinkage, rows[i])
                    for i in range(n)
                ]
            )
            losses.append(log_losses(scores, labels, fit_temperature(scores, labels)))
        best = min(losses, key=np.mean)
        expected = next(
            shrinkage
            for shrinkage, own in zip(SHRINKAGES, losses, strict=True)
            if np.mean(own - best) <= np.std(own - best, ddof=1) / n**0.5 + 1e-9
        )
        assert DiscriminantAnalysis(rows, labels).shrinkage == expected


def test_of_many_examples_a_sample_chooses_the_shrinkage(monkeypatch):
    labels = np.arange(60) % 3
    analysis = DiscriminantAnalysis(unit_rows(60, 8, seed=0) + np.eye(8)[labels], labels)
    monkeypatch.setattr(closed_form, "MOST_ANSWERS", 12)
    assert analysis.shrinkage in SHRINKAGES
    sample = stratified_sample(labels, 12, seed=0)
    assert np.bincount(labels[sample]).tolist() == [4, 4, 4]
    for shrinkage, trial in analysis.trials.items():
        scores = analysis.leave_one_out(shrinkage, sample)
        losses = log_losses(scores, labels[sample], fit_temperature(scores, labels[sample]))
        np.testing.assert_allclose(trial.losses, losses)


def test_directions_that_differ_within_a_class_count_less():
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    # The classes differ in the second column, by less than their examples do in the first.
    rows = np.stack([rng.normal(0, 1, 40), 0.5 * labels + rng.normal(0, 0.1, 40)], axis=1)
    analysis = DiscriminantAnalysis(rows, labels)
    nearest_mean = analysis.discriminants(1.0).scores(rows).argmax(axis=1)
    chosen = analysis.discriminants(analysis.shrinkage).scores(rows).argmax(axis=1)
    assert (nearest_mean == labels).mean() < 0.9
    assert (chosen == labels).mean() > 0.95


def test_a_class_of_one_example_competes_fairly_with_one_of_many():
    """Without the correction, the long mean of the single example would lose four in five."""
    rng = np.random.default_rng(0)
    labels = np.array([0] * 40 + [1])
    wins = []
    for _ in range(200):
        rows = rng.normal(0, 0.2, (41, 50)) + np.eye(50)[labels]
        query = rng.normal(0, 0.2, 50) + np.eye(50)[:2].mean(axis=0)
        [scores] = DiscriminantAnalysis(rows, labels).discriminants(1.0).scores(query[None])
        wins.append(scores.argmax())
    assert 0.4 < np.mean(wins) < 0.6


# What must not matter.


@given(labelled(), shrinkages, st.randoms(use_true_random=False))
def test_neither_the_order_of_the_examples_nor_that_of_the_classes_matters(data, shrinkage, random):
    rows, labels = data
    order = random.sample(range(len(rows)), len(rows))
    names = list(range(labels.max() + 1))
    random.shuffle(names)
    first, second = (
        DiscriminantAnalysis(rows, labels),
        DiscriminantAnalysis(rows[order], np.array(names)[labels[order]]),
    )
    queries = unit_rows(3, rows.shape[1], seed=100)
    np.testing.assert_allclose(
        second.discriminants(shrinkage).scores(queries)[:, names],
        first.discriminants(shrinkage).scores(queries),
        atol=1e-8,
    )
    assert first.shrinkage == second.shrinkage


@given(labelled(), shrinkages, st.floats(0.1, 10), st.integers(0, 9))
def test_neither_the_origin_nor_the_scale_matters(data, shrinkage, scale, seed):
    rows, labels = data
    queries = unit_rows(3, rows.shape[1], seed=100)
    shift = np.random.default_rng(seed).normal(size=rows.shape[1])
    moved = DiscriminantAnalysis(scale * rows + shift, labels).discriminants(shrinkage)
    np.testing.assert_allclose(
        moved.scores(scale * queries + shift),
        DiscriminantAnalysis(rows, labels).discriminants(shrinkage).scores(queries),
        atol=1e-8,
    )


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_to_say_everything_twice_changes_nothing(shrinkage):
    rows, labels = unit_rows(12, 20, seed=0), np.arange(12) % 3
    twice = DiscriminantAnalysis(np.concatenate([rows, rows]), np.concatenate([labels, labels]))
    once = DiscriminantAnalysis(rows, labels)
    np.testing.assert_allclose(
        twice.discriminants(shrinkage).scores(rows),
        once.discriminants(shrinkage).scores(rows),
        atol=1e-10,
    )


def test_blocks_of_any_size_give_the_same(monkeypatch):
    for n in (20, 50):
        rows, labels = unit_rows(n, 30, seed=0), np.arange(n) % 4
        whole = DiscriminantAnalysis(rows, labels)
        expected = whole.discriminants(0.5).scores(rows), whole.leave_one_out(0.5)
        with monkeypatch.context() as patch:
            patch.setattr(closed_form, "_ROWS", 7)
            parts = DiscriminantAnalysis(rows, labels)
            found = parts.discriminants(0.5).scores(rows), parts.leave_one_out(0.5)
        np.testing.assert_allclose(found, expected, atol=1e-12)


# Few examples, equal ones, one class.


def support_of(rows, labels):
    rows = np.asarray(rows, dtype=np.float32)
    return SupportSet(Examples(("",) * len(rows)), rows, np.asarray(labels))


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ([[1, 0], [0, 1]], [0, 1]),
        ([[1, 0], [1, 0], [0, 1]], [0, 0, 1]),
        ([[1, 0], [0.8, 0.6], [0, 1]], [0, 0, 1]),
        ([[1, 0], [1, 0], [0, 1], [0, 1]], [0, 0, 1, 1]),
    ],
    ids=["one each", "one and two equal", "one and two", "all equal within classes"],
)
def test_a_few_examples_are_answered_by_the_nearest_mean(rows, labels):
    queries = np.array([[0.96, 0.28], [0.28, 0.96]], dtype=np.float32)
    scores = class_scores(queries, support_of(rows, labels), 2, "lda", k=1)
    assert scores.argmax(axis=1).tolist() == [0, 1]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_collapsed_embeddings_leave_all_classes_equal(n):
    rows = np.tile(unit_rows(1, 4, seed=0), (2 * n, 1))
    support = support_of(rows, [0, 1] * n)
    np.testing.assert_allclose(class_scores(support.embeddings, support, 2, "lda", 1), 0, atol=1e-6)
    answers = support.analysis.leave_one_out(support.analysis.shrinkage)
    assert answers.shape == (0 if n == 1 else 2 * n, 2)
    np.testing.assert_allclose(answers, 0, atol=1e-6)


def test_a_single_class_is_certain():
    support = support_of(unit_rows(5, 4, seed=0), [0] * 5)
    np.testing.assert_array_equal(class_scores(support.embeddings, support, 1, "lda", 1), 0)
    assert support.analysis.shrinkage == 1


@given(labelled(), st.lists(st.integers(0, 5), min_size=4, max_size=4, unique=True))
def test_a_class_without_examples_is_never_the_answer(data, names):
    rows, labels = data
    labels = np.array(names)[labels]
    queries = unit_rows(20, rows.shape[1], seed=100).astype(np.float32)
    scores = class_scores(queries, support_of(rows, labels), 6, "lda", k=1)
    assert np.isfinite(scores).all()
    assert set(scores.argmax(axis=1)) <= set(labels)


# As a model's way to answer.


class Given:
    """An encoder of texts that are seeds."""

    layout = SimpleNamespace(windows=1)

    def embed(self, examples):
        return np.concatenate([unit_rows(1, 12, int(text)) for text in examples]).astype(np.float32)


def predictor_of(texts, labels):
    space = LabelSpace.from_labels(labels)
    examples = Examples(tuple(texts))
    support = SupportSet(examples, Given().embed(examples), space.encode(labels))
    return EmbeddingPredictor(Given(), support, space, "lda", k=1, temperature=0.1)


TEXTS, LABELS, QUERIES = [*"0123456789"], [*"aabbaabbcc"], ["20", "21", "22", "23"]


def test_new_examples_and_classes_are_learned_as_by_a_new_fit():
    some = predictor_of(TEXTS[:4], LABELS[:4])
    some.predict(QUERIES)  # What it has computed for these must not stay.
    more = some.with_examples(TEXTS[4:], LABELS[4:])
    expected = predictor_of(TEXTS, LABELS)
    np.testing.assert_array_equal(more.predict_proba(QUERIES), expected.predict_proba(QUERIES))


def test_examples_are_forgotten_as_by_a_new_fit():
    whole = predictor_of(TEXTS, LABELS)
    whole.predict(QUERIES)
    less = whole.without_examples([1, 4, 8, 9])
    kept = [0, 2, 3, 5, 6, 7]
    expected = predictor_of([TEXTS[i] for i in kept], [LABELS[i] for i in kept])
    np.testing.assert_array_equal(less.predict_proba(QUERIES), expected.predict_proba(QUERIES))
    one_class = whole.without_examples([0, 1, 4, 5, 8, 9])
    assert one_class.predict_proba(QUERIES).tolist() == [[1.0]] * 4


def test_the_discriminants_are_computed_once(monkeypatch):
    fits = []
    plain = DiscriminantAnalysis.__init__
    monkeypatch.setattr(
        DiscriminantAnalysis, "__init__", lambda *given: fits.append(1) or plain(*given)
    )
    it = predictor_of(TEXTS, LABELS)
    it.predict(QUERIES)
    replace(it, temperature=0.5).predict(QUERIES)
    assert len(fits) == 1


def test_rounding_that_moves_scores_by_less_than_half_the_lead_changes_no_answer():
    it = predictor_of(TEXTS, LABELS)
    exact = it.transform([str(seed) for seed in range(30, 90)])
    rounded = (exact + np.random.default_rng(0).normal(0, 0.02, exact.shape)).astype(np.float32)
    before, after = it.scores(exact), it.scores(rounded)
    look = SecondLook(Given(), clear_lead=2 * float(np.abs(after - before).max()))
    close = replace(it, second_look=look).close_calls(rounded, after)
    changed = np.flatnonzero(before.argmax(axis=1) != after.argmax(axis=1))
    assert 0 < len(changed) <= len(close) < len(exact)
    assert set(changed) <= set(close)
