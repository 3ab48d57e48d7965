"""The files of a backbone, by its name: in a folder, or downloaded once into the hub's cache."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from cptuning.backbone.catalogue import CATALOGUE, NAMES, NamedBackbone
from cptuning.errors import CPTuningError

_WEIGHTS = "model.safetensors"
# Of any model on the hub: safetensors, configurations and tokenizers, never a pickle or code.
# In these patterns * also stands for slashes.
_NEEDED = (
    *("config.json", _WEIGHTS, "model.safetensors.index.json", "model-*-of-*.safetensors"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt"),
    *("spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
    # A sentence encoder's modules have folders such as 0_Transformer and 1_Pooling.
    *("modules.json", "sentence_*_config.json", "config_sentence_transformers.json"),
    *("[0-9]_*/*.json", "[0-9]_*/*.txt", "[0-9]_*/model*.safetensors"),
)


@dataclass(frozen=True)
class ModelFiles:
    """Where the files of a backbone are, and what they are called elsewhere."""

    folder: Path
    name: str
    """The folder as it was given, or the id on the hub."""
    revision: str | None
    """The commit on the hub."""


def is_folder(name: str | Path) -> bool:
    """Whether a backbone's name stands for a folder of this machine.

    A name of the table always means the table's backbone: write ``./small`` for a folder ``small``.

    >>> is_folder("."), is_folder("small")
    (True, False)
    """
    return name not in CATALOGUE and Path(name).is_dir()


def find_files(name: str | Path, progress: bool = True) -> ModelFiles:
    """The files of the backbone that a name stands for; they are downloaded if necessary.

    A name is one of the table's, a folder, or an id on the hub. ``progress`` shows a bar on a
    terminal.
    """
    if isinstance(name, str) and name in CATALOGUE:
        row = CATALOGUE[name]
        folder = cached_folder(row) or _download_named(row, progress)
        _check_weights(row, folder)
        return ModelFiles(folder, row.hub_id, row.revision)
    if is_folder(name):
        return ModelFiles(Path(name), str(name), None)
    try:
        folder = download(str(name), "main", _NEEDED, progress)
    except Exception as error:  # The hub's library also raises those of the libraries below it.
        raise CPTuningError(
            f"The backbone {str(name)!r} is neither a folder here nor could it be fetched from the "
            "hub: check its name and the network, download it once and give its folder, "
            f"or use one of {NAMES}; backbone='embedded' needs no network."
        ) from error
    return ModelFiles(folder, str(name), folder.name)  # The cache names snapshots by commit.


def cached_folder(backbone: NamedBackbone) -> Path | None:
    """The folder with all files of a backbone of the table, if they were downloaded before."""
    from huggingface_hub import try_to_load_from_cache

    found = [
        try_to_load_from_cache(backbone.hub_id, file, revision=backbone.revision)
        for file in backbone.files
    ]
    if not found or not all(isinstance(path, str) for path in found):
        return None
    return Path(str(found[backbone.files.index(_WEIGHTS)])).parent


def hub_is_known() -> bool:
    """Whether the hub's address can be looked up; a proxy would do that for us."""
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        return False
    if getproxies():
        return True
    try:
        return bool(socket.getaddrinfo(urlsplit(ENDPOINT).hostname, None))
    except OSError:
        return False


def _download_named(row: NamedBackbone, progress: bool) -> Path:
    try:
        download(row.hub_id, row.revision, row.files, progress)
    except Exception as error:  # As above.
        raise CPTuningError(_not_downloaded(row, "could not be downloaded")) from error
    folder = cached_folder(row)
    if folder is None:
        raise CPTuningError(_not_downloaded(row, "lacks files on this hub"))
    return folder


def _not_downloaded(row: NamedBackbone, why: str) -> str:
    return (
        f"The backbone {row.name!r} ({row.hub_id}, {row.megabytes} MB) is not in the cache and "
        f"{why}: check the network and try again (files that are complete are kept), "
        "give the folder of a copy, or use backbone='embedded', which needs no network."
    )


def download(hub_id: str, revision: str, files: Sequence[str], progress: bool) -> Path:
    """The snapshot in the cache; a file appears in it when it is complete, and not before."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import tqdm

    class NoBar(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options | {"disable": True})  # type: ignore[no-untyped-call]

    folder = snapshot_download(
        hub_id,
        revision=revision,
        allow_patterns=list(files),
        # Without a network the hub's library tries for a minute: use only what was fetched before.
        local_files_only=not hub_is_known(),
        tqdm_class=None if progress else NoBar,
    )
    return Path(folder)


def _check_weights(row: NamedBackbone, folder: Path) -> None:
    """Refuse weights that are not those of the table. It takes a few seconds for the largest."""
    with (folder / _WEIGHTS).open("rb") as file:
        found = file_digest(file, "sha256").hexdigest()
    if found != row.sha256:
        raise CPTuningError(
            f"The weights of the backbone {row.name!r} ({row.hub_id}) are damaged or not the ones "
            f"this version knows: delete {folder.parents[1]} and try again."
        )
