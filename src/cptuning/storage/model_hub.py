"""Fitted models on the Hugging Face hub: found by their ids, downloaded once, uploaded."""

import os
import re
import sys
from pathlib import Path
from typing import Any

from cptuning.backbone.hub import download
from cptuning.errors import CPTuningError
from cptuning.extras import needed_for
from cptuning.files.places import as_path
from cptuning.storage.schema import FACTS_FILE

_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_MAIN = "main"
# What model folders hold: never a pickle or code. In these patterns * also stands for slashes.
_FILES = (
    *("*.json", "*.jsonl", "*.safetensors", "*.onnx", "README.md"),
    *("*/vocab.txt", "*/merges.txt", "*/*.model"),
)


def find_model(name: str | Path, revision: str | None = None, progress: bool = True) -> Path:
    """The folder of a model: a folder of this machine, or one downloaded from the hub.

    A name such as ``org/name`` is an id on the hub unless there is such a folder here; its files
    are kept in the hub's cache, and without a network those are used. ``revision`` is a branch, a
    tag or a commit of the hub; it may also stand behind the name, as in ``org/name@v1``.

    >>> find_model("."), find_model("no-such-folder")
    (PosixPath('.'), PosixPath('no-such-folder'))
    """
    folder = as_path(name, "folder")
    if os.path.exists(folder):  # noqa: PTH110 (it also knows names that are too long)
        if revision is not None:
            raise CPTuningError(
                f"{name} is a folder here, and revision={revision!r} is of a model on the hub: "
                "leave the revision out, or rename the folder to have the hub's."
            )
        return folder
    hub_id, at, behind = str(folder).partition("@")
    if not _HUB_ID.fullmatch(hub_id):
        return folder  # Whoever opens it says what is missing.
    wanted = revision or (behind if at else None)
    with needed_for("A model on the hub"):
        return _downloaded(hub_id, wanted or _MAIN, progress)


def upload_model(folder: Path, hub_id: str, *, private: bool, branch: str, message: str) -> str:
    """Make a folder the newest commit of a repository, which is created if necessary.

    Gives the commit's address. Files of an earlier model that this one lacks are removed.
    """
    if not _HUB_ID.fullmatch(hub_id):
        raise CPTuningError(f"{hub_id!r} is not a name on the hub: use one such as org/name.")
    with needed_for("The hub"):
        from huggingface_hub import HfApi
    api = HfApi(library_name="cptuning")
    try:
        api.create_repo(hub_id, private=private, exist_ok=True)
        if branch != _MAIN:
            api.create_branch(hub_id, branch=branch, exist_ok=True)
        commit = api.upload_folder(
            repo_id=hub_id,
            folder_path=folder,
            revision=branch,
            commit_message=message,
            delete_patterns=list(_FILES),
        )
    except Exception as error:  # The hub's library also raises those of the libraries below it.
        raise CPTuningError(
            f"The model could not be uploaded to {hub_id} ({_reason(error)}): check the name and "
            "the network, and log in with `hf auth login` as somebody who may write there."
        ) from error
    return str(commit.commit_url)


def _downloaded(hub_id: str, revision: str, progress: bool) -> Path:
    """The snapshot in the cache; the facts come first, so that no other model is downloaded."""
    where = f"{hub_id} at {revision}" if revision != _MAIN else hub_id
    try:
        folder = download(hub_id, revision, [FACTS_FILE], progress=False)
        if (folder / FACTS_FILE).is_file():
            # Of the same commit, even if another one is made in between.
            return download(hub_id, folder.name, _FILES, progress and sys.stderr.isatty())
    except Exception as error:  # As above.
        raise CPTuningError(
            f"There is no folder {hub_id} here, and the model {where} could not be fetched from "
            f"the hub ({_reason(error)}): check its name and the network, or give a folder."
        ) from error
    raise CPTuningError(
        f"{where} on the hub is not a CP-Tuning model (no {FACTS_FILE}): "
        "models get there by push_to_hub or `cptuning push`."
    )


def _reason(error: Exception) -> str:
    """Why the hub refused, in a few words."""
    from huggingface_hub import errors

    reasons: dict[type[Exception], str] = {
        errors.LocalEntryNotFoundError: "it is not in the cache, and the hub can't be reached",
        errors.GatedRepoError: "access to it has to be granted first",
        errors.RepositoryNotFoundError: "there is no such model, or it is private",
        errors.RevisionNotFoundError: "it has no such revision",
    }
    for kind, reason in reasons.items():
        if isinstance(error, kind):
            return reason
    response: Any = getattr(error, "response", None)
    if response is not None and response.status_code in (401, 403):
        return "you are not allowed to"
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".")[:200] if lines else type(error).__name__
