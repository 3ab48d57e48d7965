"""The files of a saved encoder: those of its backbone, and its own."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from cptuning.backbone.packed import BACKBONE_FILES, PACKED_WEIGHTS

BACKBONE_FOLDER = "backbone"
OWN_FILE = "prompts.safetensors"
"""In a model's folder: the backbone, and the prompt vectors and centre of a trained encoder."""


@dataclass(frozen=True)
class EncoderFiles:
    """The files that an encoder is made of: of the package, or of a model's folder."""

    backbone: Path
    own: Path | None = None

    @classmethod
    def of(cls, folder: Path) -> "EncoderFiles":
        """The files of a model; if its weights are packed, it was not trained."""
        backbone = folder / BACKBONE_FOLDER
        is_packed = (backbone / PACKED_WEIGHTS).is_file()
        return cls(backbone, None if is_packed else folder / OWN_FILE)

    @property
    def digest(self) -> str:
        """A hash of all weights."""
        paths = sorted(self.backbone.rglob("*.safetensors"))
        digest = hashlib.sha256()
        for path in (*paths, *([self.own] if self.own else [])):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def copy(self, folder: Path) -> "EncoderFiles":
        """Copy them into a model's folder."""
        backbone = folder / BACKBONE_FOLDER
        if self.own is not None:
            shutil.copytree(self.backbone, backbone)
            shutil.copyfile(self.own, folder / OWN_FILE)
            return EncoderFiles(backbone, folder / OWN_FILE)
        backbone.mkdir()
        for name in BACKBONE_FILES:
            shutil.copyfile(self.backbone / name, backbone / name)
        return EncoderFiles(backbone)
