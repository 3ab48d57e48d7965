"""Two processes must do what one does: the same loss and the same gradient."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cptuning.errors import CPTuningError
from cptuning.training import Processes, gather
from tests.tiny import save_sentence_encoder, save_tiny

ROOT = Path(__file__).parents[2]
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}

SCRIPT = """
import sys
import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.parallel import DistributedDataParallel
from cptuning.backbone import load_backbone
from cptuning.data import Examples, LabelSpace
from cptuning.methods.cp_tuning import CPTuning
from cptuning.methods.evaluation_log import EvaluationLog
from cptuning.methods.cp_tuning_settings import settings_for
from cptuning.methods.training import LabelledExamples, Split, Training
from cptuning.training import Processes
from tests.methods.conftest import BAD, GOOD

folder, reduction, output = sys.argv[1:4]
processes = Processes.find("cpu")
settings = settings_for(
    "default", pair=False, batch_size=8, mlm_rate=0.4, reduction=reduction, steps=3,
    evaluate_every=1, learning_rate=1e-3,
)
data = LabelledExamples(Examples(GOOD + BAD), np.array([0] * 6 + [1] * 6))
more = Examples(("the red train", "yes or no ?", "how would i start", "a few years later"))
split = Split(data, dev=data, unlabeled=more)
labels = LabelSpace(("good", "bad"))
learner = CPTuning(
    Training(
        load_backbone(folder), settings, labels, split, processes, seed=2, precision="float32"
    )
)
task = learner.task(split, EvaluationLog())
model = task.objective.train()
if processes.count > 1:
    model = DistributedDataParallel(model, find_unused_parameters=True)
losses = model(**task.inputs(0))
losses["loss"].backward()
found = {f"grad/{n}": p.grad for n, p in task.objective.named_parameters() if p.grad is not None}
mlm = losses["mlm"].detach().clone()
if processes.count > 1:  # each process has the masked-LM loss of its own rows
    torch.distributed.all_reduce(mlm)
    mlm /= processes.count
found |= {"contrastive": losses["contrastive"].detach(), "mlm": mlm}
task.objective.zero_grad(set_to_none=True)
fitted = learner.fit()
found["embeddings"] = torch.from_numpy(fitted.task.support().embeddings)
found["count"] = torch.tensor(processes.count)
if processes.is_main:
    save_file({name: value.contiguous() for name, value in found.items()}, output)
if processes.count > 1:
    torch.distributed.destroy_process_group()
"""


RIVAL_SCRIPT = """
import sys
import torch
from safetensors.torch import save_file
from cptuning import make_classifier
from cptuning.training import Processes
from tests.methods.conftest import BAD, GOOD

folder, method, output = sys.argv[1:4]
more = {} if method == "fine-tuning" else {"label_words": {"good": "great", "bad": "dull"}}
classifier = make_classifier(
    method, backbone=folder, steps=3, batch_size=8, learning_rate=1e-3, validation="none",
    verbose=False, precision="float32", **more,
)
texts = GOOD + BAD
classifier.fit(texts, ["good"] * 6 + ["bad"] * 6, unlabeled=texts)
processes = Processes.find("auto")
found = {
    "scores": torch.from_numpy(classifier.decision_function(texts)),
    "count": torch.tensor(processes.count),
}
if processes.is_main:
    save_file(found, output)
if processes.count > 1:
    torch.distributed.destroy_process_group()
"""


# The whole way of a user: fit in two processes, and the weights that every one of them has then.
FIT_SCRIPT = """
import sys
import torch
from safetensors.torch import save_file
from cptuning import CPTuningClassifier
from cptuning.training import Processes
from tests.methods.conftest import BAD, GOOD

folder, settings, output = sys.argv[1:4]
settings = dict(word.split("=") for word in settings.split(","))
settings = {n: float(v) if "." in v else int(v) for n, v in settings.items()}
classifier = CPTuningClassifier(
    folder, steps=4, evaluate_every=2, batch_size=8, mlm_rate=0.4, learning_rate=1e-3,
    verbose=False, precision="float32", **settings,
)
texts, labels = GOOD + BAD, ["good"] * 6 + ["bad"] * 6
classifier.fit(texts, labels, X_dev=texts, y_dev=labels)
processes = Processes.find("auto")
weights = classifier.predictor_.encoder.module.named_parameters()
found = {n: p.detach().clone() for n, p in weights} | {
    "embeddings": torch.from_numpy(classifier.transform(texts)),
    "count": torch.tensor(processes.count),
    "kept": torch.tensor(classifier.history_.best_step),
    "sharded": torch.tensor(processes.sharded),
}
if processes.is_main:
    save_file(found, output)
if processes.count > 1:
    torch.distributed.destroy_process_group()
"""


def test_two_processes_train_the_sentence_encoder_that_one_trains(tmp_path):
    encoder = save_sentence_encoder(tmp_path / "encoder", dense=[(8, "Tanh")], **NO_DROPOUT)
    check_same_model(*outcomes(tmp_path, FIT_SCRIPT, "chunk_size=0", folder=encoder))


@pytest.mark.parametrize("method", ["fine-tuning", "warp"])
def test_two_processes_train_the_rival_that_one_trains(tmp_path, method):
    one, two = outcomes(tmp_path, RIVAL_SCRIPT, method)
    torch.testing.assert_close(two["scores"], one["scores"], rtol=1e-3, atol=1e-5)


def test_two_processes_with_sharded_weights_train_the_model_of_one(tmp_path):
    """FSDP, with frozen layers and a chunked batch besides."""
    one, two = outcomes(tmp_path, FIT_SCRIPT, "frozen_share=0.5,chunk_size=3", sharded=True)
    assert (one.pop("sharded"), two.pop("sharded")) == (False, True)
    check_same_model(one, two)


def check_same_model(one, two):
    assert one.keys() == two.keys()
    # A softmax does not see the keys' biases: their gradients are noise, which Adam makes steps of.
    for name in [name for name in one if not name.endswith("key.bias")]:
        torch.testing.assert_close(two[name], one[name], rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_two_processes_give_the_loss_gradient_and_model_of_one(tmp_path, reduction):
    one, two = outcomes(tmp_path, SCRIPT, reduction)
    assert one.keys() == two.keys()
    assert sum(name.startswith("grad/") for name in one) > 20
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-3, atol=1e-5, msg=name)


def outcomes(tmp_path, code, argument, sharded=False, folder=None):
    """What a script finds when it is one process, and when it is two."""
    from safetensors.torch import load_file

    folder = folder or save_tiny("bert", tmp_path / "bert", **NO_DROPOUT)
    script = tmp_path / "script.py"
    script.write_text(code)
    launch = {
        1: [sys.executable],
        2: [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"],
    }
    results = {}
    for count, command in launch.items():
        output = tmp_path / f"{count}.safetensors"
        subprocess.run(
            [*command, str(script), str(folder), argument, str(output)],
            check=True,
            env={
                "PATH": "",
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
                "OMP_NUM_THREADS": "1",
                "HOME": str(tmp_path),
                "ACCELERATE_USE_FSDP": str(sharded).lower(),
                "CUDA_VISIBLE_DEVICES": "",  # Where no device is named, it is the CPU.
            },
        )
        results[count] = load_file(output)
    one, two = results[1], results[2]
    assert two.pop("count") == 2
    assert one.pop("count") == 1
    return one, two


def test_gathering_in_a_single_process_gives_the_rows_themselves():
    rows = torch.randn(3, 2)
    assert gather(rows) is rows


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(CPTuningError, match="'nonsense' is not available"):
        Processes.find("nonsense")
