"""The connection to Ray: to the cluster at $RAY_ADDRESS, or to a new one on this machine."""

import logging
import os
from typing import Any

from cptuning.extras import needed_for


def connect_ray(workers: int) -> Any:
    """The package ``ray``, connected; without $RAY_ADDRESS, to a new cluster on this machine."""
    # Ray reads it when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with needed_for("--runner ray"):
        import ray
    if not ray.is_initialized():
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        if os.environ.get("RAY_ADDRESS"):
            ray.init(**quiet)
        else:
            ray.init(num_cpus=workers, include_dashboard=False, **quiet)
    return ray


def gpu_share(ray: Any, workers: int) -> float:
    """The share of a GPU that each worker gets; no worker gets parts of two GPUs.

    >>> class Three:
    ...     cluster_resources = staticmethod(lambda: {"GPU": 3})
    >>> [gpu_share(Three, workers) for workers in (2, 3, 4, 6, 7)]
    [1.0, 1.0, 0.5, 0.5, 0.3333333333333333]
    """
    gpus = int(ray.cluster_resources().get("GPU", 0))
    return 1 / -(-workers // gpus) if gpus else 0.0
