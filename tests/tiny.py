"""Tiny masked language models with real tokenizers, made on the spot: nothing is downloaded."""

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

SENTENCES = (
    "It was a great movie, and I loved it. All in all, it is so good.",
    "What a dull film: it was terrible, boring and far too long!",
    "the parcel came late, yet these are great shoes. Is it yes or no?",
    "Just great! In summary, the service was bad and the food was cold.",
    "how do I trace my family tree? How would I start to trace my history?",
    "Telenet was founded long ago; a few years later the network was in use.",
    "does the red train leave before noon? The red train leaves at ten.",
    "They say that the movie is great ? Nobody says that the book is dull .",
    "is it so good , or not ? Write <mask>, [MASK], [SEP], <pad> or </s> as you like.",
)
"""What the tokenizers know their words from."""

SINGLES = (
    "the movie was great",
    "a dull and boring film",
    "is the food so cold, and the service so bad, that nobody says it is good?",
    "yes",
)
PAIRS = (
    ("is it red?", "the train is red."),
    ("what was Telenet?", "a network, founded long ago, that was in use for many years."),
    ("how do I trace my family tree?", "yes"),
)


_ENDINGS = ("##s", "##ed", "##ing", "##able")
# The names of the tokens that open a sequence, pad it, close a text, stand for the unknown, mask.
BERT_NAMES = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")
ALBERT_NAMES = ("[CLS]", "<pad>", "[SEP]", "<unk>", "[MASK]")
ROBERTA_NAMES = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


# WordPiece and Unigram are given their vocabularies: their training breaks ties in another order
# each time, and every process would test other models. Byte-level BPE's training repeats exactly.


def word_piece(names: Sequence[str], separators: int = 1) -> PreTrainedTokenizerFast:
    """A tokenizer of BERT's kind: lower case, punctuation apart, ``##`` inside a word."""
    splitter = pre_tokenizers.BertPreTokenizer()
    text = " ".join(SENTENCES).lower()
    words = sorted({word for word, _ in splitter.pre_tokenize_str(text)})
    letters = sorted(set(text) - {" "})
    pieces = [*names, *letters, *(f"##{letter}" for letter in letters), *_ENDINGS, *words]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=names[3]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.WordPiece()
    return _wrapped(tokenizer, names, separators)


def byte_bpe(names: Sequence[str], separators: int = 1) -> PreTrainedTokenizerFast:
    """A tokenizer of GPT-2's kind: a word holds the space before it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=800,
        special_tokens=_special(names),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 20, trainer)
    return _wrapped(tokenizer, names, separators)


def unigram(names: Sequence[str], separators: int = 1) -> PreTrainedTokenizerFast:
    """A tokenizer of SentencePiece's kind: ``▁`` stands for a space."""
    tokenizer = Tokenizer(_unigram_model(names, unknown=3))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _wrapped(tokenizer, names, separators)


def _unigram_model(special: Sequence[str], unknown: int) -> models.Unigram:
    """The words of the sentences are whole; others are made of letters and pairs of them."""
    text = " ".join(SENTENCES)
    whole = sorted({f"▁{word}" for word in re.findall(r"\w+", text)})
    pairs = sorted({a + b for a, b in pairwise(text) if (a + b).isalpha()})
    scores = dict.fromkeys(special, 0.0) | dict.fromkeys(sorted({*text, "▁"} - {" "}), -8.0)
    scores |= dict.fromkeys(pairs[::4], -9.0) | dict.fromkeys(whole, -10.0)
    return models.Unigram(list(scores.items()), unk_id=unknown)


def _special(names: Sequence[str]) -> list[AddedToken]:
    # As RoBERTa has it: the mask takes the space before it along.
    return [AddedToken(name, special=True, lstrip=name == names[-1]) for name in names]


def _wrapped(
    tokenizer: Tokenizer, names: Sequence[str], separators: int
) -> PreTrainedTokenizerFast:
    """Told how texts and pairs are put together, and what the special tokens are."""
    tokenizer.add_special_tokens(_special(names))
    cls, pad, sep, unk, mask = names
    border = " ".join([sep] * separators)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {border} $B:1 {sep}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (cls, sep)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        cls_token=cls,
        pad_token=pad,
        sep_token=sep,
        unk_token=unk,
        mask_token=mask,
    )


SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,  # large enough for every part of the input to be felt
}
DISTIL_SIZES = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}

# The tokenizer, the model's name in transformers, and what its configuration says.
MODELS: dict[str, tuple[Callable[[], PreTrainedTokenizerFast], str, dict[str, Any]]] = {
    "bert": (lambda: word_piece(BERT_NAMES), "Bert", {}),
    "roberta": (lambda: byte_bpe(ROBERTA_NAMES, 2), "Roberta", {"type_vocab_size": 1}),
    "albert": (lambda: unigram(ALBERT_NAMES), "Albert", {"embedding_size": 8}),
    "electra": (lambda: word_piece(BERT_NAMES), "Electra", {"embedding_size": 8}),
    "distilbert": (lambda: word_piece(BERT_NAMES), "DistilBert", DISTIL_SIZES),
    "deberta-v2": (
        lambda: unigram(BERT_NAMES),
        "DebertaV2",
        {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "type_vocab_size": 0},
    ),
    "mpnet": (lambda: word_piece(ROBERTA_NAMES, 2), "MPNet", {}),
    "modernbert": (
        lambda: byte_bpe(BERT_NAMES),
        "ModernBert",
        {"local_attention": 8, "cls_token_id": 0, "sep_token_id": 2},
    ),
}
ARCHITECTURES = tuple(MODELS)


def tiny_tokenizer(architecture: str) -> PreTrainedTokenizerFast:
    """The tokenizer of a tiny model."""
    return MODELS[architecture][0]()


def tiny_model(architecture: str, tokenizer: PreTrainedTokenizerFast, **changes: Any) -> Any:
    """A masked LM with random weights, the same ones each time."""
    _, name, own = MODELS[architecture]
    config = getattr(transformers, f"{name}Config")(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        **{**SIZES, **own, **changes},
    )
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForMaskedLM")(config)
    # Biases and norms start as zeros and ones: move them, or a forgotten one would go unseen.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def save_tiny(architecture: str, folder: Path, **changes: Any) -> Path:
    """Write a tiny masked LM and its tokenizer to a folder, as ``save_pretrained`` does."""
    tokenizer = tiny_tokenizer(architecture)
    tiny_model(architecture, tokenizer, **changes).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_headless(folder: Path) -> Path:
    """Write a tiny BERT encoder that has no masked-LM head."""
    tokenizer = tiny_tokenizer("bert")
    tiny_model("bert", tokenizer).bert.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_t5(folder: Path) -> Path:
    """Write a tiny T5 with random weights that knows the marks of gaps."""
    marks = [f"<extra_id_{i}>" for i in range(4)]
    special = ("<pad>", "</s>", "<unk>", *marks)
    tokenizer = Tokenizer(_unigram_model(special, unknown=2))
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in special])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=marks,
    ).save_pretrained(folder)
    config = transformers.T5Config(
        vocab_size=tokenizer.get_vocab_size(),
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
    )
    torch.manual_seed(0)
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def save_sentence_encoder(
    folder: Path,
    *,
    architecture: str = "bert",
    modes: Sequence[str] = ("mean",),
    dense: Sequence[tuple[int, str]] = (),
    normalize: bool = False,
    prompt: str = "",
    include_prompt: bool = True,
    max_length: int = 40,
    lower_case: bool = False,
    types: str = "sentence_transformers.models.",
    two_views: bool = False,
    **changes: Any,
) -> Path:
    """Write a tiny encoder in the format of sentence-transformers, as that package does.

    ``dense`` has the output width and the activation of each layer. With ``two_views`` it is a
    masked LM with its head, of whose tokens only those of the text are pooled.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tiny_tokenizer(architecture)
    model = tiny_model(architecture, tokenizer, **changes)
    (model if two_views else model.base_model).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    own = {"max_seq_length": max_length, "do_lower_case": lower_case}
    _write(folder / "sentence_bert_config.json", own)
    prompts = {"prompts": {"query": prompt}, "default_prompt_name": "query" if prompt else None}
    _write(folder / "config_sentence_transformers.json", prompts)
    width = SIZES["hidden_size"]
    pooling = {
        "embedding_dimension": width,
        "pooling_mode": list(modes),
        "include_prompt": include_prompt,
    }
    if two_views:  # Our own word: sentence-transformers pools all tokens.
        pooling["text_only"] = True
    _write(folder / "1_Pooling" / "config.json", pooling)
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    torch.manual_seed(1)
    width = int(width * len(modes))
    for out, activation in dense:
        modules.append(("Dense", f"{len(modules)}_Dense"))
        place = folder / modules[-1][1]
        facts = {
            "in_features": width,
            "out_features": out,
            "bias": True,
            "activation_function": f"{getattr(torch.nn, activation).__module__}.{activation}",
        }
        _write(place / "config.json", facts)
        layer = torch.nn.Linear(width, out)
        state = {f"linear.{name}": value for name, value in layer.state_dict().items()}
        save_file(state, place / "model.safetensors")
        width = out
    if normalize:
        modules.append(("Normalize", f"{len(modules)}_Normalize"))
        (folder / modules[-1][1]).mkdir(exist_ok=True)
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": types + kind}
        for i, (kind, path) in enumerate(modules)
    ]
    _write(folder / "modules.json", listed)
    return folder


def _write(path: Path, values: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(values), "utf-8")
