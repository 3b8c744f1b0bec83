"""Use, compare and fine-tune models written by `linker train` in sentence-transformers (extra `pretrained`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, cast

from indexes.errors import importing
from linker.base.errors import InputError

with importing("sentence-transformers", "pretrained"):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import InputModule
    from torch import Tensor

    from linker.encoders.folder import load, save_parts
    from linker.encoders.text import TextEncoder, padded


class LinkerModule(InputModule):  # type: ignore[misc]  # the library's types are not checked
    """The single module of the SentenceTransformer of a linker model: texts in, L2-normalised vectors out."""

    save_in_root = True

    def __init__(self, encoder: TextEncoder) -> None:
        super().__init__()
        self._parts = encoder
        self.network = encoder.module

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any
    ) -> dict[str, Tensor | Any]:
        """Return the token ids of texts, int64 [n, longest], and their mask; `prompt` comes before each text."""
        if not all(isinstance(text, str) for text in inputs):
            raise InputError("models of `linker train` encode strings only, no pairs, images or dictionaries")
        texts = [f"{prompt or ''}{text}" for text in inputs]
        ids, mask = padded(self._parts.tokenizer.encode_batch(texts, self._parts.max_length))
        return {"input_ids": ids, "attention_mask": mask}

    def forward(self, features: dict[str, Tensor | Any], **kwargs: Any) -> dict[str, Tensor | Any]:
        """Add the vectors, float32 [n, dim], as `sentence_embedding`; they have gradients in training."""
        vectors = self.network(features["input_ids"], features["attention_mask"].bool())
        features["sentence_embedding"] = torch.nn.functional.normalize(vectors.float(), dim=-1)
        return features

    @property
    def max_seq_length(self) -> int:
        """The number of tokens after which a text is truncated."""
        return self._parts.max_length

    @max_seq_length.setter
    def max_seq_length(self, length: int) -> None:
        self._parts.max_length = length

    def get_embedding_dimension(self) -> int:
        """Return the dimension of the vectors."""
        return self._parts.dim

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the model to a folder that both libraries can load. Raises InputError if pickles are requested."""
        if not safe_serialization:
            raise InputError("linker writes no pickles: leave safe_serialization as it is")
        save_parts(self._parts, Path(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:
        """Read a folder that `linker train` or `save` wrote. Raises the same InputErrors as `linker.load_encoder`."""
        return cls(load(Path(model_name_or_path, subfolder)))


def open_model(folder: str | Path) -> SentenceTransformer:
    """Return a model of `linker train` as a SentenceTransformer.

    `SentenceTransformer(folder, trust_remote_code=True)` does the same: the library requires this flag before it
    imports a module that is not its own. Raises InputError if the folder contains no such model.
    """
    model = SentenceTransformer(modules=[LinkerModule.load(str(folder))], similarity_fn_name="cosine")
    return cast("SentenceTransformer", model)
