"""The prompts of the paper's data sets, read from ``templates.toml``."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from cptuning.errors import CPTuningError


@dataclass(frozen=True)
class TaskPrompt:
    """A template with the word that stands for each label."""

    template: str
    label_words: dict[str, str]


def task_prompt(task: str, kind: str = "template") -> TaskPrompt:
    """The manual prompt of a data set; ``kind="p_tuning"`` has trainable tokens in it.

    >>> task_prompt("SST-2")
    TaskPrompt(template='{a} It was [MASK].', label_words={'negative': 'terrible',
    'positive': 'great'})
    >>> task_prompt("SST-9")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: There is no task 'SST-9' among the prompts: use one of SST-2, ...
    """
    entry = _entry(task)
    return TaskPrompt(entry[kind], dict(entry["label_words"]))


def study_prompts(task: str) -> list[TaskPrompt]:
    """The five prompts of a data set's family, for the study of how much a prompt matters.

    >>> for prompt in study_prompts("CR")[:2]:
    ...     print(prompt.template, list(prompt.label_words.values()))
    {a} It was [MASK]. ['terrible', 'great']
    It was [MASK]. {a} ['bad', 'good']
    """
    entry = _entry(task)
    if "family" not in entry:
        raise CPTuningError(f"The prompt study has no prompts for {task}.")
    return [
        TaskPrompt(one["template"], dict(zip(entry["label_words"], one["words"], strict=True)))
        for one in _catalog()["families"][entry["family"]]
    ]


def default_template(*, pair: bool, kind: str = "template") -> str:
    """The template for texts that nobody wrote one for.

    >>> default_template(pair=False)
    '{a} It was [MASK].'
    """
    return str(_catalog()["defaults"]["pair" if pair else "single"][kind])


def _entry(task: str) -> dict[str, Any]:
    tasks = _catalog()["tasks"]
    if task not in tasks:
        raise CPTuningError(
            f"There is no task {task!r} among the prompts: use one of {', '.join(tasks)}, "
            "or give a template and label words."
        )
    entry: dict[str, Any] = tasks[task]
    return entry


@cache
def _catalog() -> dict[str, Any]:
    return tomllib.loads((files("cptuning.prompting") / "templates.toml").read_text("utf-8"))
