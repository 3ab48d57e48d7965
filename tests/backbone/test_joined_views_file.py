"""How views are joined is stored beside a graph; a damaged file is refused."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from cptuning.backbone.joined_views import VIEWS_FILE, Views


@pytest.mark.parametrize(("stored_weight", "weight"), [(None, 1.0), (0.5, 0.5)])
def test_views_are_loaded_as_they_were_saved(tmp_path, stored_weight, weight):
    views = Views(np.arange(5, dtype=np.float32), mask_width=2)
    views.save(tmp_path)
    found = Views.load(tmp_path, stored_weight)
    np.testing.assert_array_equal(found.centre, views.centre)
    assert (found.mask_width, found.sentence_weight) == (2, weight)


@pytest.mark.parametrize(
    ("centre", "width"),
    [
        (np.zeros(3), "1"),
        (np.zeros((1, 3), np.float32), "1"),
        (np.array([np.nan], np.float32), "1"),
        (np.zeros(3, np.float32), "4"),
        (np.zeros(3, np.float32), "-1"),
        (np.zeros(3, np.float32), "9" * 5000),
        (np.zeros(3, np.float32), None),
    ],
)
def test_impossible_views_are_refused(tmp_path, centre, width):
    metadata = None if width is None else {"mask_width": width}
    save_file({"centre": centre}, tmp_path / VIEWS_FILE, metadata)
    with pytest.raises(ValueError, match=VIEWS_FILE):
        Views.load(tmp_path, None)
