"""Exported models on the paper's test sets, the first half: torch's labels, also in 8 bits."""

import pytest

from tests.exported_labels import FIRST_HALF, check_exports, needs_data


@needs_data
@pytest.mark.parametrize("name", FIRST_HALF)
def test_an_export_has_the_labels_of_torch(name, tmp_path):
    check_exports(name, tmp_path)
