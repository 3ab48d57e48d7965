"""The hyperparameters of CP-Tuning that the paper varies, and the values that --tune tries."""

from functools import cache
from typing import Any

from cptuning.extras import needed_for

TUNING_TRIALS = 24

# By symbol: the setting, and its values over the paper's range, by the number that is shown.
HYPERPARAMETERS: dict[str, tuple[str, dict[float, float]]] = {
    "m": ("margin", {m: m for m in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)}),
    "1/τn": ("tau_n", {float(n): 1 / n for n in (1, 2, 4, 8, 16, 32, 64)}),
    "ξ": ("xi", {float(xi): float(xi) for xi in (1, 2, 3, 4, 5, 6, 8)}),
    "λ": ("contrastive_weight", {w: w for w in (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)}),
}

# What --tune chooses: the setting by its symbol.
TUNED = {symbol: setting for symbol, (setting, _) in HYPERPARAMETERS.items()} | {"k": "k"}


@cache
def tuning_trials() -> list[dict[str, Any]]:
    """Values of m, τn, ξ, λ and k to try, from the ranges of the paper's figure.

    They are drawn at random beforehand and do not depend on results, so that workers can share
    them and a killed sweep continues with the same ones.
    """
    with needed_for("--tune"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {
        "margin": optuna.distributions.FloatDistribution(0.0, 0.5),
        "tau_n": optuna.distributions.FloatDistribution(1 / 64, 1.0, log=True),
        "xi": optuna.distributions.FloatDistribution(1.0, 8.0, log=True),
        "contrastive_weight": optuna.distributions.FloatDistribution(0.1, 1.0),
        "k": optuna.distributions.IntDistribution(1, 15, step=2),
    }
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [study.ask(space).params | {"inference": "knn"} for _ in range(TUNING_TRIALS)]
