"""Input data: examples, labels, splits, batches, table files and the paper's data sets."""

from cptuning.data.batches import BalancedBatches, UniformBatches
from cptuning.data.benchmark_datasets import (
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
from cptuning.data.examples import Examples, LabelledData, as_examples
from cptuning.data.files import Table, check_kind, iter_tables, read_table
from cptuning.data.labels import LabelSpace, aligned, as_labels
from cptuning.data.lessons import LESSONS_FILE, Lesson, append_lesson, read_lessons
from cptuning.data.splits import (
    k_shot_split,
    stratified_folds,
    stratified_sample,
    unbalanced_split,
)
from cptuning.data.writing import RowWriter, open_writer

__all__ = [
    "LESSONS_FILE",
    "MORE_DATASETS",
    "PAIR_DATASETS",
    "PAPER_DATASETS",
    "SEEDS",
    "BalancedBatches",
    "DatasetSplit",
    "Examples",
    "LabelSpace",
    "LabelledData",
    "Lesson",
    "RowWriter",
    "Table",
    "UniformBatches",
    "aligned",
    "append_lesson",
    "as_examples",
    "as_labels",
    "check_kind",
    "full_train",
    "iter_tables",
    "k_shot_split",
    "load_dataset_split",
    "load_few_shot",
    "load_test",
    "open_writer",
    "read_lessons",
    "read_table",
    "stratified_folds",
    "stratified_sample",
    "unbalanced_split",
]
