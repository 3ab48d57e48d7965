"""The models of a server by name: loaded from folders and reloaded without downtime."""

import asyncio
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cptuning.errors import CPTuningError
from cptuning.serving.api_errors import ApiError
from cptuning.serving.batch_worker import BatchWorker
from cptuning.serving.limits import Limits
from cptuning.serving.prometheus import Metrics
from cptuning.serving.served_model import ServedModel
from cptuning.storage import FACTS_FILE
from cptuning.storage.folders import is_tagger

_log = logging.getLogger("cptuning")


class ModelRegistry:
    """The workers, by the names of their models.

    ``place`` is a model folder, or a folder of model folders, whose taggers are left out: see
    ``tagging_routes.py``. The name in a request is only looked
    up among the loaded models; no path is ever built from it.
    """

    def __init__(
        self,
        place: Path,
        limits: Limits,
        metrics: Metrics,
        *,
        device: str = "auto",
        default: str | None = None,
        may_be_empty: bool = False,
    ) -> None:
        self._place = place.absolute()
        self._is_one_model = (place / FACTS_FILE).is_file()
        self._may_be_empty = may_be_empty
        self._limits = limits
        self._metrics = metrics
        self._device = device
        self._reloading = asyncio.Lock()
        folders = self._folders()
        if default is not None and default not in folders:
            raise CPTuningError(
                f"There is no model {default!r} to use as the default, only {', '.join(folders)}."
            )
        self.default = default or (next(iter(folders)) if len(folders) == 1 else None)
        self._workers: dict[str, BatchWorker] = {}
        for name, folder in folders.items():
            self._put(name, self._loaded(folder))
        metrics.watch(self)

    def __iter__(self) -> Iterator[tuple[str, BatchWorker]]:
        """The names and workers, sorted by name."""
        return iter(sorted(self._workers.items()))

    def find(self, name: str | None) -> tuple[str, BatchWorker]:
        """The name and the worker of a model; without a name, of the default model."""
        wanted = self.default if name is None else name
        if wanted is None:
            raise ApiError(
                404, "This server has several models and no default: use /models/{name}/..."
            )
        worker = self._workers.get(wanted)
        if worker is None:
            raise ApiError(404, "There is no model with this name: GET /models lists the models.")
        return wanted, worker

    async def reload(self, name: str) -> BatchWorker:
        """Load a model's folder, again or for the first time, while requests are still served."""
        async with self._reloading:
            folder = self._folders().get(name)
            if folder is None:
                raise ApiError(404, "There is no model folder with this name.")
            model = await asyncio.to_thread(self._loaded, folder)
            return self._put(name, model)

    async def reload_all(self) -> None:
        """Load every folder again; add new models and drop those whose folder is gone."""
        async with self._reloading:
            try:
                folders = self._folders()
            except CPTuningError as error:
                _log.warning("Not reloaded: %s", error)
                return
            for name, folder in folders.items():
                try:
                    self._put(name, await asyncio.to_thread(self._loaded, folder))
                except CPTuningError as error:
                    _log.warning("Not reloaded: %s", error)
            for name in self._workers.keys() - folders.keys():
                self._workers.pop(name).drain()

    def close(self) -> None:
        """Finish the accepted requests and accept no more."""
        for _, worker in self:
            worker.drain()
        for _, worker in self:
            worker.join(self._limits.seconds)

    def _folders(self) -> dict[str, Path]:
        """The model folders, by name."""
        if self._is_one_model and holds_tagger(self._place):
            return {}
        if self._is_one_model:
            return {self._place.resolve().name: self._place}
        if not self._place.is_dir():
            raise CPTuningError(f"There is no folder {self._place}: name one that holds a model.")
        found = {
            folder.name: folder
            for folder in sorted(self._place.iterdir())
            # A hidden folder is still being saved; a name that can't be printed can't be requested.
            if (folder / FACTS_FILE).is_file()
            and not holds_tagger(folder)
            and not folder.name.startswith(".")
            and folder.name.isprintable()
        }
        if not found and not self._may_be_empty:
            raise CPTuningError(
                f"{self._place} is not a model folder and contains none: "
                "create one with `cptuning fit`."
            )
        return found

    def _loaded(self, folder: Path) -> ServedModel:
        return ServedModel(folder, self._device, self._limits.examples)

    def _put(self, name: str, model: ServedModel) -> BatchWorker:
        """Serve a model from now on; its predecessor finishes the requests that it accepted."""
        worker = BatchWorker(
            model,
            self._limits,
            partial(self._metrics.observe_batch, name),
            predecessor=self._workers.get(name),
        )
        self._workers[name] = worker
        return worker


def holds_tagger(folder: Path) -> bool:
    """Whether a folder holds a tagger; what is wrong with a folder is told when it is loaded."""
    try:
        return is_tagger(folder)
    except CPTuningError:
        return False
