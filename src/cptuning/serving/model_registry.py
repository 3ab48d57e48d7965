"""The models of a server by their names: loaded from folders, replaced without a gap."""

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

_log = logging.getLogger("cptuning")


class ModelRegistry:
    """The workers by the names of their models.

    ``place`` is a model folder, or a folder of model folders. What a client calls a model is only
    ever looked up among the names that are there: no path is made of it.
    """

    def __init__(
        self,
        place: Path,
        limits: Limits,
        metrics: Metrics,
        *,
        device: str = "auto",
        default: str | None = None,
    ) -> None:
        self._place = place.absolute()
        self._is_one_model = (place / FACTS_FILE).is_file()
        self._limits = limits
        self._metrics = metrics
        self._device = device
        self._reloading = asyncio.Lock()
        folders = self._folders()
        if default is not None and default not in folders:
            raise CPTuningError(
                f"There is no model {default!r} to be the default one, only {', '.join(folders)}."
            )
        self.default = default or (next(iter(folders)) if len(folders) == 1 else None)
        self._workers: dict[str, BatchWorker] = {}
        for name, folder in folders.items():
            self._put(name, self._loaded(folder))
        metrics.watch(self)

    def __iter__(self) -> Iterator[tuple[str, BatchWorker]]:
        """The names in their order, with the workers."""
        return iter(sorted(self._workers.items()))

    def find(self, name: str | None) -> tuple[str, BatchWorker]:
        """A model by its name, or the default one."""
        wanted = self.default if name is None else name
        if wanted is None:
            raise ApiError(
                404, "This server has several models and no default one: use /models/{name}/..."
            )
        worker = self._workers.get(wanted)
        if worker is None:
            raise ApiError(
                404, "There is no model of this name: GET /models lists those there are."
            )
        return wanted, worker

    async def reload(self, name: str) -> BatchWorker:
        """Read a model's folder again, or for the first time; requests go on meanwhile."""
        async with self._reloading:
            folder = self._folders().get(name)
            if folder is None:
                raise ApiError(404, "There is no model folder of this name.")
            model = await asyncio.to_thread(self._loaded, folder)
            return self._put(name, model)

    async def reload_all(self) -> None:
        """Read every folder again; take in new ones and let go of those that are gone."""
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
                self._workers.pop(name).retire()

    def close(self) -> None:
        """Finish what was accepted, and accept no more."""
        for _, worker in self:
            worker.retire()
        for _, worker in self:
            worker.join(self._limits.seconds)

    def _folders(self) -> dict[str, Path]:
        """The model folders by their names."""
        if self._is_one_model:
            return {self._place.resolve().name: self._place}
        if not self._place.is_dir():
            raise CPTuningError(f"There is no folder {self._place}: give one that holds a model.")
        found = {
            folder.name: folder
            for folder in sorted(self._place.iterdir())
            # A hidden folder is one that is being saved; names that can't be shown can't be sent.
            if (folder / FACTS_FILE).is_file()
            and not folder.name.startswith(".")
            and folder.name.isprintable()
        }
        if not found:
            raise CPTuningError(
                f"{self._place} is no model folder and holds none: make one with `cptuning fit`."
            )
        return found

    def _loaded(self, folder: Path) -> ServedModel:
        return ServedModel(folder, self._device, self._limits.examples)

    def _put(self, name: str, model: ServedModel) -> BatchWorker:
        """Let a model answer from now on; the one before it finishes what it accepted."""
        worker = BatchWorker(
            model,
            self._limits,
            partial(self._metrics.observe_batch, name),
            predecessor=self._workers.get(name),
        )
        self._workers[name] = worker
        return worker
