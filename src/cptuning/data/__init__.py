"""Input data: examples, labels, splits, batches, table files and the paper's data sets."""

from cptuning.data.added_examples import ADDED_FILE, AddedExamples, append_added, read_added
from cptuning.data.batches import BalancedBatches, UniformBatches
from cptuning.data.benchmark_datasets import (
    EVERYDAY_DATASETS,
    MORE_DATASETS,
    PAIR_DATASETS,
    PAPER_DATASETS,
    SEEDS,
    DatasetSplit,
    full_train,
    load_dataset_split,
    load_few_shot,
    load_test,
)
from cptuning.data.descriptions import (
    LabelDescriptions,
    as_descriptions,
    read_descriptions,
    words_of,
)
from cptuning.data.examples import LEFT_OUT, Examples, LabelledData, as_examples
from cptuning.data.files import (
    NoRowsError,
    Table,
    TablePreview,
    check_kind,
    iter_tables,
    preview_table,
    read_table,
)
from cptuning.data.label_cells import LabelCells, as_cell, seems_joined, separator_for
from cptuning.data.label_sets import (
    LabelFormat,
    LabelSet,
    MultiLabelSpace,
    is_multi_label,
    label_parts,
    label_space_from_json,
    label_space_of,
    label_text,
    strata,
)
from cptuning.data.labels import LabelSpace, aligned, as_labels
from cptuning.data.splits import (
    k_shot_split,
    stratified_folds,
    stratified_sample,
    unbalanced_split,
)
from cptuning.data.writing import RowWriter, open_writer

__all__ = [
    "ADDED_FILE",
    "EVERYDAY_DATASETS",
    "LEFT_OUT",
    "MORE_DATASETS",
    "PAIR_DATASETS",
    "PAPER_DATASETS",
    "SEEDS",
    "AddedExamples",
    "BalancedBatches",
    "DatasetSplit",
    "Examples",
    "LabelCells",
    "LabelDescriptions",
    "LabelFormat",
    "LabelSet",
    "LabelSpace",
    "LabelledData",
    "MultiLabelSpace",
    "NoRowsError",
    "RowWriter",
    "Table",
    "TablePreview",
    "UniformBatches",
    "aligned",
    "append_added",
    "as_cell",
    "as_descriptions",
    "as_examples",
    "as_labels",
    "check_kind",
    "full_train",
    "is_multi_label",
    "iter_tables",
    "k_shot_split",
    "label_parts",
    "label_space_from_json",
    "label_space_of",
    "label_text",
    "load_dataset_split",
    "load_few_shot",
    "load_test",
    "open_writer",
    "preview_table",
    "read_added",
    "read_descriptions",
    "read_table",
    "seems_joined",
    "separator_for",
    "strata",
    "stratified_folds",
    "stratified_sample",
    "unbalanced_split",
    "words_of",
]
