"""Points on a plane: by neighbourhood if there are enough, else by direction."""

import numpy as np
import pytest

from cptuning.reporting.projection import project, subsample


def test_few_points_are_projected_on_their_principal_components():
    line = np.linspace(-1, 1, 9, dtype=np.float32)[:, None] * np.array([[3, 4, 0]], np.float32)
    points, method = project(line)
    assert method == "PCA"
    # On a line all the spread lies on the first axis.
    assert np.abs(points[:, 0]).max() == pytest.approx(5)
    assert np.abs(points[:, 1]).max() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("n", [1, 2])
def test_even_one_or_two_points_have_a_place(n):
    points, _ = project(np.ones((n, 1), np.float32))
    assert points.shape == (n, 2)
    assert np.isfinite(points).all()


def test_many_points_keep_their_neighbourhoods_and_their_places():
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(3, 8), 15, axis=0)
    embeddings = (centres + rng.normal(0, 0.05, centres.shape)).astype(np.float32)
    points, method = project(embeddings)
    assert method == "t-SNE"
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    assert (nearest // 15 == np.arange(45) // 15).all()
    assert (project(embeddings)[0] == points).all()


def test_many_copies_of_one_text_are_no_neighbourhood():
    assert project(np.ones((50, 4), np.float32))[1] == "PCA"


def test_a_subsample_is_in_order_without_repeats_and_always_the_same():
    rows = subsample(100, most=10)
    assert len(set(rows.tolist())) == 10
    assert rows.tolist() == sorted(rows.tolist())
    assert subsample(100, most=10).tolist() == rows.tolist()
