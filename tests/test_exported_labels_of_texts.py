"""Exported models on the paper's test sets of single texts: torch's labels, also in 8 bits."""

import pytest

from tests.exported_labels import check_exports, needs_data

TEXTS = {"SST-2": 872, "MR": 2000, "CR": 2000, "SUBJ": 2000}


@needs_data
@pytest.mark.parametrize("name", TEXTS)
def test_an_export_has_the_labels_of_torch(name, tmp_path):
    check_exports(name, TEXTS[name], tmp_path)
