"""The settings of CP-Tuning's rivals, and their presets.

``paper`` is what each method's own authors say; ``default`` is the same method with rates and
steps for a small backbone and little time.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from cptuning.methods.cp_tuning_settings import MOST_STEPS
from cptuning.prompting import default_template
from cptuning.settings import Kind, TrainingSettings, setting


@dataclass(frozen=True)
class WordSettings(TrainingSettings):
    """Settings of a method in which words stand for the labels."""

    label_words: dict[str, str] | None = setting(
        "A word, or a few, for each label; None means the names of the labels."
    )


@dataclass(frozen=True)
class PETSettings(WordSettings):
    """Settings of PET."""

    mlm_weight: float = setting(
        "The weight of the masked-LM loss on unlabelled texts; the classification loss has the "
        "rest.",
        least=0,
        most=1,
    )
    mlm_rate: float = setting(
        "The share of an unlabelled text's tokens that is hidden for the masked-LM loss.",
        least=0,
        most=1,
    )
    patterns: tuple[str, ...] = setting(
        "More templates: a model is trained with each, and all of them teach a final classifier."
    )
    distillation_temperature: float = setting(
        "The temperature at which the final classifier learns what the patterns' models say.",
        above=0,
    )
    distillation_steps: int = setting("The training steps of the final classifier.", least=1)


@dataclass(frozen=True)
class LMBFFSettings(WordSettings):
    """Settings of LM-BFF."""

    n_templates: int = setting(
        "How many of the best templates found are tuned; 0 means the given template alone.", least=0
    )
    n_mappings: int = setting(
        "How many of the best sets of label words found are tuned, for each template; 0 means the "
        "given words.",
        least=0,
    )
    candidate_steps: int | None = setting(
        "The training steps of each candidate; None means as many as for the chosen one.", least=0
    )
    candidate_learning_rate: float = setting(
        "The learning rate of the candidates, which does not depend on that of the chosen one.",
        above=0,
    )
    candidate_batch_size: int = setting(
        "The batch size of the candidates, which does not depend on that of the chosen one.",
        least=2,
    )
    generator: str | None = setting(
        "A T5, by folder or hub id, that writes templates; None means that the backbone itself "
        "fills masks."
    )
    beam: int = setting("The width of the beam in the search for templates.", least=1)
    template_tokens: int = setting(
        "The longest template that a T5 may write, in tokens; the backbone fills 1 to 4 masks.",
        least=3,
    )
    words_per_class: int = setting("How many words are considered for each class.", least=1)
    combinations: int = setting(
        "How many combinations of words are compared, however many classes there are.", least=1
    )
    demonstrations: int = setting(
        "How many times demonstrations, one labelled example per class, are drawn for a text; "
        "0 means that there are none.",
        least=0,
    )
    similar_share: float = setting(
        "The share of a class's examples, the most similar ones, that demonstrations are drawn "
        "from.",
        above=0,
        most=1,
    )


@dataclass(frozen=True)
class PTuningSettings(WordSettings):
    """Settings of P-tuning."""

    prompt_learning_rate: float = setting(
        "The highest learning rate of the prompt vectors and of what computes them.", above=0
    )


@dataclass(frozen=True)
class WARPSettings(WordSettings):
    """Settings of WARP."""

    class_vectors: Literal["label-words", "random"] = setting(
        "Where the class vectors start: from the decoder's rows of the label words, or at random."
    )


Presets = dict[str, dict[Kind, TrainingSettings]]

_FINE_TUNING = TrainingSettings(
    template="[CLS] {a}",
    max_length=128,
    optimizer="adamw",
    learning_rate=2e-5,
    weight_decay=0.0,
    warmup=0.0,
    clip_norm=1.0,
    batch_size=4,
    batches="uniform",
    accumulate=1,
    steps=1000,
    epochs=0,
    most_steps=MOST_STEPS,
    evaluate_every=100,
    patience=0,
    selection="best",
    temperature=1.0,
)

# What the small embedded backbone and a user's patience ask for, in every rival.
_SMALL: dict[str, Any] = {
    "weight_decay": 0.01,
    "warmup": 0.1,
    "batch_size": 16,
    "batches": "balanced",
    "steps": 100,
    "epochs": 25,
    "evaluate_every": 10,
}

_WORDS = WordSettings(
    **asdict(replace(_FINE_TUNING, template=default_template(pair=False))), label_words=None
)
_PET = PETSettings(
    **asdict(replace(_WORDS, learning_rate=1e-5, weight_decay=0.01, max_length=256, steps=250)),
    mlm_weight=1e-4,
    mlm_rate=0.15,
    patterns=(),
    distillation_temperature=2.0,
    distillation_steps=5000,
)
_LM_BFF = LMBFFSettings(
    **asdict(replace(_WORDS, learning_rate=1e-5, batch_size=8)),
    n_templates=0,
    n_mappings=0,
    candidate_steps=None,
    candidate_learning_rate=1e-5,
    candidate_batch_size=8,
    generator=None,
    beam=100,
    template_tokens=20,
    words_per_class=100,
    combinations=10_000,
    demonstrations=0,
    similar_share=0.5,
)
_P_TUNING = PTuningSettings(
    **asdict(
        replace(
            _WORDS,
            template=default_template(pair=False, kind="p_tuning"),
            learning_rate=1e-5,
            max_length=256,
            batch_size=16,
            steps=3500,
            warmup=150 / 3500,
            evaluate_every=250,
        )
    ),
    prompt_learning_rate=1e-4,
)
_WARP = WARPSettings(
    **asdict(
        replace(
            _WORDS,
            template="[PRO*7] {a} [PRO*7] [MASK] [PRO*6]",
            learning_rate=1e-3,
            batch_size=8,
        )
    ),
    class_vectors="label-words",
)


def _presets(
    paper: TrainingSettings, default: TrainingSettings, pair: str, default_pair: str | None = None
) -> Presets:
    """Both presets, each for single texts and for pairs."""
    return {
        "default": {
            "single": default,
            "pair": replace(default, template=default_pair or pair),
        },
        "paper": {"single": paper, "pair": replace(paper, template=pair)},
    }


def _lm_bff(paper: dict[str, Any], default: dict[str, Any]) -> Presets:
    small = replace(
        _LM_BFF,
        **_SMALL,
        learning_rate=5e-5,
        candidate_steps=40,
        candidate_learning_rate=5e-5,
        candidate_batch_size=16,
        beam=3,
        words_per_class=50,
        **default,
    )
    return _presets(replace(_LM_BFF, **paper), small, default_template(pair=True))


FINE_TUNING_PRESETS = _presets(
    _FINE_TUNING, replace(_FINE_TUNING, **_SMALL, learning_rate=1e-4), "[CLS] {a} [SEP] {b}"
)
PET_PRESETS = _presets(
    _PET,
    replace(_PET, **_SMALL, learning_rate=5e-5, max_length=128, distillation_steps=200),
    default_template(pair=True),
)
LM_BFF_T_PRESETS = _lm_bff({"n_templates": 100}, {"n_templates": 8})
LM_BFF_L_PRESETS = _lm_bff({"n_mappings": 100}, {"n_mappings": 8})
LM_BFF_TL_PRESETS = _lm_bff(
    {"n_templates": 10, "n_mappings": 10}, {"n_templates": 3, "n_mappings": 3}
)
P_TUNING_PRESETS = _presets(
    _P_TUNING,
    replace(_P_TUNING, **_SMALL, learning_rate=5e-5, prompt_learning_rate=1e-3, max_length=128),
    default_template(pair=True, kind="p_tuning"),
)
# Its authors' few-shot variant starts the prompt vectors from the words of a manual template.
WARP_PRESETS = _presets(
    _WARP,
    replace(
        _WARP,
        **_SMALL | {"steps": 200, "epochs": 50, "evaluate_every": 20},  # vectors alone learn slowly
        template=default_template(pair=False),
        learning_rate=3e-3,
    ),
    "[PRO*5] {a} [PRO*5] [MASK] [PRO*5] {b} [PRO*5]",
    default_pair=default_template(pair=True),
)
