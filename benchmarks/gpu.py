"""How fast CP-Tuning trains large models on one GPU, and where the time goes.

    python -m benchmarks.gpu [--models RoBERTa-large] [--batches 16 64 256] [--steps 20] [--tiny]

RoBERTa-large- and ALBERT-large-shaped models with random weights (nothing is downloaded), texts of
128 tokens, bfloat16, the training loop itself. Prints a Markdown section: steps per second and the
share of the GPU's peak (floating-point operations as torch counts them), step by step, replayed as
the loop does it, and with torch.compile of the layers as well; what the GPU does in a step; and
where the host waits for it. ``--tiny`` rehearses all of it on small models, also on a CPU. Needs
only torch and transformers.
"""

import argparse
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoTokenizer

from cptuning.backbone import Backbone
from cptuning.backbone.loading import EMBEDDED
from cptuning.data import Examples, LabelSpace
from cptuning.methods.cp_tuning import CPTuning, CPTuningTask
from cptuning.methods.cp_tuning_settings import settings_for
from cptuning.methods.evaluation_log import EvaluationLog
from cptuning.methods.training import LabelledExamples, Split, Training
from cptuning.training import Callback, Processes, train

LENGTH, WARM_UP = 128, 5
# Dense bfloat16 operations per second, as the manufacturer states them.
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "embedding_size": 16,
    "vocab_size": 16_384,
}
SHAPES = {
    "RoBERTa-large": (
        transformers.RobertaForMaskedLM,
        transformers.RobertaConfig,
        LARGE
        | {"vocab_size": 50_265, "intermediate_size": 4096, "max_position_embeddings": 514}
        | {"type_vocab_size": 1},
    ),
    "ALBERT-large": (
        transformers.AlbertForMaskedLM,
        transformers.AlbertConfig,
        LARGE | {"vocab_size": 30_000, "intermediate_size": 4096, "embedding_size": 128},
    ),
}
# Parts of the name of a kernel (or, on a CPU, of an operator) by its kind; the first match counts.
KINDS = {
    "attention": ("attention", "flash", "fmha", "sdpa"),
    "matrix products": ("gemm", "cutlass", "nvjet", "xmma", "cublas", "::mm", "addmm", "bmm"),
    "optimiser": ("multi_tensor_apply", "adam", "lerp_", "addcdiv", "addcmul"),
    "copies": ("memcpy", "memset", "copy_"),
}
# How the passes of a step are made: whether they are replayed, and whether layers are compiled.
WAYS = {
    "step by step": (False, False),
    "replayed": (True, False),
    "compiled and replayed": (True, True),
}
REST = "elementwise, norms, dropout, sums"


class Window(Callback):
    """A callback: does something when the loop is warm, and something else after the last step."""

    def __init__(self, last: int, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self.at = {WARM_UP: enter, last: leave}

    def on_step(self, step: int, losses: dict[str, Tensor]) -> None:
        """What is to be done at this step, without a look at the losses."""
        self.at.get(step, lambda: None)()


@dataclass
class Bench:
    """A model's task for one batch size, as the loop gets it."""

    task: CPTuningTask
    device: torch.device

    @classmethod
    def of(cls, backbone: Backbone, batch: int, device: torch.device, replay: bool) -> "Bench":
        """CP-Tuning of two classes; every text but the first fills the model's window.

        One is shorter, as in practice: where nothing is padded, transformers leaves the mask out,
        and compiled layers would have to be compiled again for the recording.
        """
        settings = settings_for("default", pair=False, batch_size=batch, max_length=LENGTH)
        words = [w for w in backbone.tokenizer.get_vocab() if w.isalpha()]
        rng = np.random.default_rng(0)
        texts = [" ".join(rng.choice(words, 2 * LENGTH if i else 8)) for i in range(batch)]
        data = LabelledExamples(Examples(tuple(texts)), np.arange(batch) % 2)
        split, labels = Split(data), LabelSpace(("a", "b"))
        learner = CPTuning(Training(backbone, settings, labels, split, Processes(device)))
        task = learner.task(split, EvaluationLog())
        task.replayable = replay
        return cls(task, device)

    def run(self, steps: int, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        """The loop itself, with something done around its last ``steps`` steps."""
        last = WARM_UP + steps
        settings = replace(self.task.settings, steps=last, evaluate_every=last + 1)
        watch, processes = Window(last, enter, leave), Processes(self.device)
        train(self.task, settings, processes, precision="bfloat16", callbacks=[watch])

    def seconds(self, steps: int) -> float:
        """A step, with the device at rest before and after."""
        clock: list[float] = []

        def look() -> None:
            self.wait()
            clock.append(time.perf_counter())

        self.run(steps, look, look)
        return (clock[1] - clock[0]) / steps

    def operations(self) -> int:
        """Floating-point operations of one step, forward and backward."""
        with FlopCounterMode(display=False) as counter:
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                losses = self.task.objective.train()(**self.task.inputs(0))
            losses["loss"].backward()
        self.task.objective.zero_grad(set_to_none=True)
        return int(counter.get_total_flops())

    def shares(self, steps: int) -> dict[str, float]:
        """Seconds per step by what the device did."""
        on_gpu = self.device.type == "cuda"
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
        profiler = profile(activities=activities)
        self.run(steps, profiler.start, lambda: (self.wait(), profiler.stop()))
        kind_of = torch.autograd.DeviceType.CUDA if on_gpu else torch.autograd.DeviceType.CPU
        found: Counter[str] = Counter(dict.fromkeys([*KINDS, REST], 0.0))
        for event in profiler.key_averages():
            # Annotations span kernels that are counted themselves.
            if event.device_type == kind_of and not event.is_user_annotation:
                spent = event.self_device_time_total if on_gpu else event.self_cpu_time_total
                found[kind(event.key)] += 1e-6 * spent / steps
        return dict(found)

    def waits(self, steps: int) -> Counter[str]:
        """Where the host waited for the device, and how often, in so many steps."""
        if self.device.type != "cuda":
            return Counter()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.run(
                steps,
                lambda: torch.cuda.set_sync_debug_mode("warn"),
                lambda: torch.cuda.set_sync_debug_mode("default"),
            )
        places = [(Path(w.filename), w.lineno) for w in said if "synchroniz" in str(w.message)]
        return Counter(f"{'/'.join(path.parts[-3:])}:{line}" for path, line in places)

    def wait(self) -> None:
        """Wait until the device is idle."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def kind(name: str) -> str:
    """What a kernel is for.

    >>> kind("void flash_fwd_kernel"), kind("nvjet_tst_128x256"), kind("vectorized_layer_norm")
    ('attention', 'matrix products', 'elementwise, norms, dropout, sums')
    """
    lower = name.lower()
    return next((k for k, parts in KINDS.items() if any(p in lower for p in parts)), REST)


def backbone_of(name: str, device: torch.device, tiny: bool) -> Backbone:
    """A model of that shape with random weights; the tokenizer is the embedded model's."""
    model_class, config_class, sizes = SHAPES[name]
    known = config_class().to_dict()
    smaller = {n: v for n, v in TINY.items() if n in known} if tiny else {}
    torch.manual_seed(0)
    with torch.device(device):
        model = model_class(config_class(**sizes | smaller))
    return Backbone(name, model.eval(), AutoTokenizer.from_pretrained(EMBEDDED), has_head=True)


def compile_layers(model: nn.Module) -> None:
    """Compile each layer in place: they are alike, so it is done once for all of them.

    On a CPU it is a rehearsal: the code is captured, but no C++ is written and compiled.
    """
    on_gpu = next(model.parameters()).device.type == "cuda"
    lists = [list(part) for part in model.modules() if isinstance(part, nn.ModuleList)]
    innermost = [part for part in lists if not any(_has_list(layer) for layer in part)]
    for layer in max(innermost, key=len):
        layer.compile(dynamic=False, backend="inductor" if on_gpu else "eager")


def _has_list(module: nn.Module) -> bool:
    return any(isinstance(part, nn.ModuleList) for part in module.modules())


def peak_of(device: torch.device) -> float | None:
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for known, peak in PEAKS.items() if known in name), None)


def measured(
    name: str, batches: Sequence[int], steps: int, device: torch.device, tiny: bool
) -> tuple[list[str], list[str], Counter[str]]:
    """Rows of both tables, and the places where the host waited."""
    speeds, profiles, waits = [], [], Counter[str]()
    operations: dict[int, int] = {}
    peak = peak_of(device)
    for way, (replay, compiled) in WAYS.items():
        backbone = backbone_of(name, device, tiny)
        # All of them first: what is read before the first step would be compiled as well.
        benches = {batch: Bench.of(backbone, batch, device, replay) for batch in batches}
        if compiled:
            compile_layers(backbone.model)
        for batch, bench in benches.items():
            # Compiled code is opaque to the counter, and does the same products.
            if batch not in operations:
                operations[batch] = bench.operations()
            seconds = bench.seconds(steps)
            rate = operations[batch] / seconds
            share = f"{100 * rate / peak:.1f} %" if peak else "-"
            how = f"{name}, batch {batch}, {way}"
            speeds.append(
                f"| {how} | {1 / seconds:.2f} | {batch / seconds:.0f} | {rate / 1e12:.2f} "
                f"| {share} |"
            )
            print(speeds[-1], flush=True)
            if batch in (batches[0], batches[-1]):
                shares = bench.shares(min(steps, 5))
                # The profiler slows the host down, so its gaps are those of the step without it.
                busy = sum(shares.values())
                gap = max(0.0, seconds - busy)
                cells = [f"{100 * s / max(seconds, busy):.1f} %" for s in (*shares.values(), gap)]
                profiles.append(f"| {how} | {1000 * seconds:.1f} | {' | '.join(cells)} |")
                print(profiles[-1], flush=True)
            waits += bench.waits(steps=5)
        del backbone, bench, benches
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return speeds, profiles, waits


def section(
    batches: Sequence[int] = (16, 64, 256),
    steps: int = 20,
    device: torch.device | None = None,
    tiny: bool = False,
    models: Sequence[str] = (),
) -> str:
    """Measure, and give the result as Markdown."""
    device = device or Processes.find("auto").device
    on_gpu = device.type == "cuda"
    where = torch.cuda.get_device_name(device) if on_gpu else "a CPU"
    torch.set_float32_matmul_precision("high")
    began = time.perf_counter()
    found = [measured(name, batches, steps, device, tiny) for name in models or SHAPES]
    speeds, profiles = ([row for part in found for row in part[i]] for i in (0, 1))
    waits = sum((part[2] for part in found), Counter[str]())
    ours = {place: n for place, n in waits.items() if "cptuning" in place}
    listed = "\n".join(f"- `{place}`: {n}" for place, n in waits.most_common())
    peak = peak_of(device)
    of_peak = f" of {peak / 1e12:.0f} TFLOP/s" if peak else ""
    kinds = [*KINDS, REST, "nothing (the host is late)"]
    waited = "Host synchronisations can only be observed on a GPU."
    if on_gpu:
        waited = f"In CP-Tuning's own code the host waited {sum(ours.values())} times" + (
            f"; in all, by place:\n\n{listed}" if waits else ", nor anywhere else."
        )
    tail = "\n".join(
        [
            f"| | steps per second | texts per second | TFLOP/s | share{of_peak} |",
            "|---|---|---|---|---|",
            *speeds,
            "",
            "What a step's time goes to:",
            "",
            f"| | ms per step | {' | '.join(kinds)} |",
            "|---" * (len(kinds) + 2) + "|",
            *profiles,
            "",
            waited,
        ]
    )
    return (
        f"## Large models on {where}{' (tiny rehearsal)' if tiny else ''}\n\n"
        "Random weights, the default preset (the lower half of the layers frozen), "
        f"{LENGTH} tokens per text, bfloat16 autocast, torch {torch.__version__}, "
        f"transformers {transformers.__version__}, {steps} steps each after {WARM_UP}; "
        f"{time.perf_counter() - began:.0f} s in all.\n\n{tail}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--batches", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tiny", action="store_true", help="Small models, to rehearse.")
    chosen = parser.parse_args()
    device = Processes.find(chosen.device).device
    # On standard error: whether steps could not be recorded, and why.
    logging.getLogger("cptuning").addHandler(logging.StreamHandler())
    logging.getLogger("cptuning").setLevel(logging.INFO)
    print("\n" + section(chosen.batches, chosen.steps, device, chosen.tiny, chosen.models))


if __name__ == "__main__":
    main()
