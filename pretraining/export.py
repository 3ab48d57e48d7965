"""A checkpoint to a plain transformers folder, and that to the folder inside the package.

python -m pretraining.export CHECKPOINT TOKENIZER OUTPUT             float16, for transformers
python -m pretraining.export --pack FOLDER src/cptuning/backbone/embedded
"""

import argparse
import json
import shutil
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import BertForMaskedLM

from cptuning.backbone.packing import pack
from pretraining.model import MaskedLM, to_transformers
from pretraining.targets import SENTENCE_WEIGHTS, read_weights
from pretraining.train import CHECKPOINT, Recipe
from pretraining.vocabulary import save_for_transformers

_MODULES = "sentence_transformers.models"


def read_model(folder: Path) -> MaskedLM:
    """The model of a checkpoint."""
    with safe_open(folder / CHECKPOINT, framework="pt") as file:
        names = [n for n in file.keys() if n.startswith("model/")]  # noqa: SIM118
        weights = {n.removeprefix("model/"): file.get_tensor(n) for n in names}
        recipe = json.loads(file.metadata()["recipe"])
    shape = Recipe(**{**recipe, "cycle": tuple(recipe["cycle"])}).shape(len(weights["bias"]))
    model = MaskedLM(shape)
    model.load_state_dict(weights)
    return model.eval()


def as_transformers(model: MaskedLM) -> BertForMaskedLM:
    """The same model in transformers' own class."""
    bert = BertForMaskedLM(model.shape.config())
    weights = to_transformers(model.encoder_state())
    missing, unknown = bert.load_state_dict(weights, strict=False)
    # The decoder is tied to the input table and the bias: it has no weights of its own.
    left = [name for name in missing if not name.startswith("cls.predictions.decoder")]
    if left or unknown:
        raise RuntimeError(f"The weights don't fit: {left} are missing, {unknown} unknown.")
    bert.tie_weights()
    bert.eval()
    return bert


def export(checkpoint: Path, tokenizer: Path, output: Path) -> None:
    """Write a folder that ``AutoModelForMaskedLM`` and ``AutoTokenizer`` load."""
    model = read_model(checkpoint)
    as_transformers(model).half().save_pretrained(output)
    save_sentence_head(model, output)
    save_for_transformers(Tokenizer.from_file(str(tokenizer / "tokenizer.json")), output)


def save_sentence_head(model: MaskedLM, output: Path) -> None:
    """Make the folder one that sentence-transformers loads, too: mean pooling, a linear map."""
    dense = model.sentence.dense
    (output / "1_Pooling").mkdir()
    (output / "2_Dense").mkdir()
    width = dense.in_features
    files = {
        "modules.json": [
            {"idx": number, "name": str(number), "path": path, "type": f"{_MODULES}.{kind}"}
            for number, (path, kind) in enumerate(
                (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"))
            )
        ],
        "1_Pooling/config.json": {
            "word_embedding_dimension": width,
            "pooling_mode_mean_tokens": True,
        },
        "2_Dense/config.json": {
            "in_features": width,
            "out_features": width,
            "bias": True,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
    }
    for name, content in files.items():
        (output / name).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    weights = {f"linear.{n}": value.half() for n, value in dense.state_dict().items()}
    save_file(weights, output / SENTENCE_WEIGHTS)


def pack_into_package(folder: Path, package: Path) -> None:
    """Write the packed weights, the configuration and the tokenizer where the package has them."""
    save_file(pack(read_weights(folder)), package / "model.packed.safetensors")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(folder / name, package / name)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--pack", action="store_true")
    chosen = parser.parse_args()
    if len(chosen.folders) != (2 if chosen.pack else 3):
        parser.error("give CHECKPOINT TOKENIZER OUTPUT, or --pack FOLDER PACKAGE_FOLDER")
    (pack_into_package if chosen.pack else export)(*chosen.folders)


if __name__ == "__main__":
    main()
