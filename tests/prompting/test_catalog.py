"""The prompts that come with the package: whole, parsable, and for the labels of the data."""

import os
import tomllib
from importlib.resources import files

import pytest

from cptuning.data import PAIR_DATASETS, PAPER_DATASETS, load_few_shot
from cptuning.errors import CPTuningError
from cptuning.prompting import Template, default_template, study_prompts, task_prompt
from cptuning.prompting.template import Prompts

TASKS = (*PAPER_DATASETS, "TREC", "SNLI")
needs_data = pytest.mark.skipif("CPTUNING_DATA" not in os.environ, reason="CPTUNING_DATA unset")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", ["template", "p_tuning"])
def test_every_tasks_template_is_of_the_right_kind(task, kind):
    prompt = task_prompt(task, kind)
    template = Template.parse(prompt.template)
    assert template.is_pair == (task in PAIR_DATASETS)
    assert any(isinstance(part, Prompts) for part in template.parts) == (kind == "p_tuning")
    assert len(set(prompt.label_words.values())) == len(prompt.label_words) >= 2


def test_the_manual_templates_are_lm_bffs():
    assert task_prompt("CR").template == "{a} It was [MASK]."
    assert task_prompt("CR").label_words == {"negative": "terrible", "positive": "great"}
    assert task_prompt("SUBJ").template == "{a} This is [MASK]."
    assert task_prompt("MRPC").template == "{a} [MASK],[JOIN] {b:lowered}"
    assert task_prompt("RTE").template == "{a:chopped}? [MASK],[JOIN] {b:lowered}"
    assert task_prompt("RTE").label_words == {"not_entailment": "No", "entailment": "Yes"}


@pytest.mark.parametrize("task", PAPER_DATASETS)
def test_the_prompt_study_has_five_different_prompts_for_each_task(task):
    prompts = study_prompts(task)
    assert len({prompt.template for prompt in prompts}) == 5
    for prompt in prompts:
        assert Template.parse(prompt.template).is_pair == (task in PAIR_DATASETS)
        assert prompt.label_words.keys() == task_prompt(task).label_words.keys()


@needs_data
@pytest.mark.parametrize("task", [*PAPER_DATASETS, "TREC"])
def test_the_labels_are_those_of_the_data(task):
    (_, labels), _ = load_few_shot(task)
    assert set(labels) == set(task_prompt(task).label_words)


@pytest.mark.parametrize("pair", [False, True])
def test_texts_of_ones_own_have_a_template(pair):
    for kind in ("template", "p_tuning"):
        assert Template.parse(default_template(pair=pair, kind=kind)).is_pair == pair


def test_an_unknown_task_or_one_without_a_study_is_named():
    with pytest.raises(CPTuningError, match="no task 'IMDB'"):
        task_prompt("IMDB")
    with pytest.raises(CPTuningError, match="no prompts for TREC"):
        study_prompts("TREC")


def test_the_file_is_plain_toml_that_anybody_can_read():
    text = (files("cptuning.prompting") / "templates.toml").read_text("utf-8")
    assert set(tomllib.loads(text)) == {"defaults", "tasks", "families"}
