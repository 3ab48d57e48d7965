"""Fitted models as folders: safetensors, JSON, the tokenizer and a card; nothing is unpickled."""

from cptuning.storage.card import CardFacts
from cptuning.storage.folders import check_place, new_folder, read_facts
from cptuning.storage.model_hub import find_model, upload_model
from cptuning.storage.predictors import (
    LoadedModel,
    load_model,
    load_predictor,
    save_model,
    save_shared,
    write_common,
)
from cptuning.storage.schema import (
    FACTS_FILE,
    FORMAT,
    OF_ONE_MACHINE,
    SEARCH_FACTS,
    ModelFacts,
    as_json,
    versions,
)

__all__ = [
    "FACTS_FILE",
    "FORMAT",
    "OF_ONE_MACHINE",
    "SEARCH_FACTS",
    "CardFacts",
    "LoadedModel",
    "ModelFacts",
    "as_json",
    "check_place",
    "find_model",
    "load_model",
    "load_predictor",
    "new_folder",
    "read_facts",
    "save_model",
    "save_shared",
    "upload_model",
    "versions",
    "write_common",
]
