"""How Ray is found: the cluster of $RAY_ADDRESS, or one on this machine."""

import logging
import os
from typing import Any

from cptuning.errors import CPTuningError


def connected(workers: int) -> Any:
    """The package ``ray``, connected; without a cluster, one starts here for so many workers."""
    # Read when Ray is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise CPTuningError('--runner ray needs Ray: pip install "cptuning[ray]".') from error
    if not ray.is_initialized():
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        if os.environ.get("RAY_ADDRESS"):
            ray.init(**quiet)
        else:
            ray.init(num_cpus=workers, include_dashboard=False, **quiet)
    return ray


def gpu_share(ray: Any, workers: int) -> float:
    """How much of a GPU each worker gets where they share the cluster's evenly."""
    return min(1.0, float(ray.cluster_resources().get("GPU", 0)) / workers)
