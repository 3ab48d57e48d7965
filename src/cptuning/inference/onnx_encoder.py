"""Texts to unit vectors with ONNX Runtime: what an exported model uses, without torch."""

import shutil
from pathlib import Path

import numpy as np

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.inference.support import FloatArray
from cptuning.prompting import Layout, collate, token_budget_batches

ONNX_FILE = "encoder.onnx"
# On a CPU more tokens at a time are no faster, and texts of unlike lengths need more padding.
_TOKEN_BUDGET = 512


class OnnxEncoder:
    """An exported encoder: token ids in, normalised [OMSK] embeddings out."""

    def __init__(self, layout: Layout, path: Path) -> None:
        import onnxruntime

        self.layout = layout
        self.path = path
        options = onnxruntime.SessionOptions()
        # Threads that wait by spinning take the time of whatever else the machine has to do.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise CPTuningError(f"{path} is no readable ONNX model: export it again.") from error
        self._inputs = {value.name for value in self._session.get_inputs()}

    def save(self, folder: Path) -> None:
        """Copy the graph into a model folder."""
        shutil.copyfile(self.path, folder / ONNX_FILE)

    def embed(self, examples: Examples) -> FloatArray:
        """L2-normalised [OMSK] embeddings, one row an example, in their order."""
        encodings = self.layout.encode(examples)
        batches = token_budget_batches([len(e) for e in encodings], _TOKEN_BUDGET)
        pieces = []
        for rows in batches:
            batch = collate([encodings[i] for i in rows], self.layout.special.pad)
            arrays = {
                "input_ids": batch.input_ids,
                "attention_mask": batch.attention_mask,
                "token_type_ids": batch.token_type_ids,
                "outputs": batch.outputs,
            }
            wanted = {name: array for name, array in arrays.items() if name in self._inputs}
            pieces.append(self._session.run(None, wanted)[0])
        gathered = np.concatenate(pieces)
        embeddings = np.empty_like(gathered)
        embeddings[np.concatenate(batches)] = gathered
        return embeddings
