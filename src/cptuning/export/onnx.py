"""A fitted model as an ONNX folder that predicts with numpy, tokenizers and ONNX Runtime alone."""

import warnings
from contextlib import redirect_stdout
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from cptuning.errors import CPTuningError
from cptuning.inference import Predictor
from cptuning.inference.onnx_encoder import ONNX_FILE
from cptuning.storage import new_folder, write_common

if TYPE_CHECKING:
    from cptuning.estimator import TextClassifier


def export_onnx(classifier: "TextClassifier", folder: str | Path) -> None:
    """Write the classifier so that ``cptuning.load`` needs no torch for it.

    The folder predicts, explains and takes new examples; it can't be trained further.
    """
    import torch
    from torch import Tensor, nn
    from torch.nn.functional import normalize

    from cptuning.backbone import TextEncoder

    predictor = classifier.predictor_
    if not isinstance(predictor, Predictor):
        raise CPTuningError(
            f"Only models of the method cp-tuning can be exported, and this one is of "
            f"{classifier.method}."
        )
    encoder = predictor.encoder
    if not isinstance(encoder, TextEncoder):
        raise CPTuningError("This model is exported already: export the folder it came from.")

    prompted = deepcopy(encoder.module).to("cpu")  # the classifier stays where it is

    class Embedder(nn.Module):
        """The whole way from ids to the unit vector, in one graph."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder = prompted

        def forward(
            self,
            input_ids: Tensor,
            attention_mask: Tensor,
            token_type_ids: Tensor,
            outputs: Tensor,
        ) -> Tensor:
            rows = torch.arange(input_ids.shape[0], device=input_ids.device)
            features, _ = self.encoder(input_ids, attention_mask, token_type_ids, rows, outputs)
            return normalize(features.float(), dim=-1)

    module = Embedder().eval()
    names = ["input_ids", "attention_mask", "token_type_ids", "outputs"]
    ids = torch.zeros(2, 7, dtype=torch.long)
    sample = (ids, torch.ones_like(ids), torch.zeros_like(ids), torch.tensor([3, 5]))
    axes = {name: {0: "batch", 1: "length"} for name in names[:3]}
    with (
        new_folder(Path(folder)) as place,
        torch.no_grad(),
        redirect_stdout(StringIO()),
        warnings.catch_warnings(),
    ):
        # Tracing warns of sizes that might be taken as constants; the tests show that none is.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            sample,
            str(place / ONNX_FILE),
            input_names=names,
            output_names=["embeddings"],
            dynamic_axes={**axes, "outputs": {0: "batch"}, "embeddings": {0: "batch"}},
            opset_version=17,
            dynamo=False,
        )
        write_common(classifier, place)
