"""The packages that the base install does without, and how to get them."""

from collections.abc import Iterator
from contextlib import contextmanager

from cptuning.errors import CPTuningError

# As Python imports them, by the extra that brings them.
_EXTRAS = {
    "train": ("torch", "transformers", "accelerate", "matplotlib", "onnx", "huggingface_hub"),
    "files": ("pyarrow", "openpyxl"),
    "serve": ("fastapi", "fastapi_offline", "uvicorn", "prometheus_client"),
    "app": ("gradio",),
    "tune": ("optuna",),
    "ray": ("ray",),
    "index": ("faiss",),
    "tracking": ("tensorboard", "mlflow", "wandb", "trackio"),
}


@contextmanager
def needed_for(purpose: str) -> Iterator[None]:
    """Inside, the import of a package that is missing fails with how to install it.

    >>> with needed_for("The page"):
    ...     raise ModuleNotFoundError(name="gradio")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: The page needs gradio: pip install "cptuning[app]".
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        for extra, packages in _EXTRAS.items():
            if package in packages:
                raise CPTuningError(
                    f'{purpose} needs {package}: pip install "cptuning[{extra}]".'
                ) from error
        raise
