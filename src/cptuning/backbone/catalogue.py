"""The backbones that have a short name: where they come from, and what each is for."""

from dataclasses import dataclass

_ENCODER = (
    *("config.json", "model.safetensors"),
    *("tokenizer.json", "tokenizer_config.json"),
)
# What makes a sentence encoder of it: how token vectors are pooled, and the longest text.
_SENTENCE_ENCODER = (
    *_ENCODER,
    *("special_tokens_map.json", "modules.json"),
    *("sentence_bert_config.json", "1_Pooling/config.json"),
)


@dataclass(frozen=True)
class NamedBackbone:
    """A row of the table."""

    name: str
    use: str
    """What it is for."""
    languages: str
    licence: str
    megabytes: int
    """What is downloaded, in millions of bytes."""
    hub_id: str = ""
    """Empty if it is in the package."""
    revision: str = ""
    """The commit on the hub: what a name stands for never changes within a version."""
    sha256: str = ""
    """Of its model.safetensors."""
    files: tuple[str, ...] = ()
    """What is downloaded: safetensors, JSON and the tokenizer, nothing that holds code."""


CATALOGUE = {
    backbone.name: backbone
    for backbone in (
        NamedBackbone(
            name="embedded",
            use="a quick start without a network; research and evaluation only",
            languages="English",
            licence="own terms",
            megabytes=28,
        ),
        NamedBackbone(
            name="small",
            use="topics, intents and texts that mean the same, on a CPU",
            languages="English",
            licence="MIT",
            megabytes=67,
            hub_id="thenlper/gte-small",
            revision="17e1f347d17fe144873b1201da91788898c639cd",
            sha256="9a1eb90bbac323ea08aa5629b624fe6ae75db121b904799c2266a1e2c2de22d2",
            files=_SENTENCE_ENCODER,
        ),
        NamedBackbone(
            name="base",
            use="the same with three times the parameters: a GPU, or patience",
            languages="English",
            licence="MIT",
            megabytes=439,
            hub_id="BAAI/bge-base-en-v1.5",
            revision="a5beb1e3e68b9ab74eb54cfd186867f64f240e1a",
            sha256="c7c1988aae201f80cf91a5dbbd5866409503b89dcaba877ca6dba7dd0a5167d7",
            files=_SENTENCE_ENCODER,
        ),
        NamedBackbone(
            name="multilingual",
            use="texts in other languages, or in several",
            languages="100 languages",
            licence="MIT",
            megabytes=488,
            hub_id="intfloat/multilingual-e5-small",
            revision="614241f622f53c4eeff9890bdc4f31cfecc418b3",
            sha256="1a55775f53449dac10a2bcbc312469fac40b96d53198c407081a831f81c98477",
            files=_SENTENCE_ENCODER,
        ),
        NamedBackbone(
            name="paper",
            use="the paper's masked language model, RoBERTa-large: a GPU",
            languages="English",
            licence="MIT",
            megabytes=1423,
            hub_id="FacebookAI/roberta-large",
            revision="722cf37b1afa9454edce342e7895e588b6ff1d59",
            sha256="047c85f0b96269cd62e6f732644f067004eebd95af5b5d35965ae2528f13bf38",
            files=_ENCODER,
        ),
    )
}
"""By name, smallest first."""

NAMES = ", ".join(CATALOGUE)
"""For help texts and sentences."""
