"""The interface between encoders and the engine."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Precision = Literal["float32", "bfloat16"]


@runtime_checkable
class Encoder(Protocol):
    """The interface that the engine requires of a model."""

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hash of everything that determines the vectors: weights, configuration, vocabulary."""
        ...

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return float32 [n, dim], L2-normalised, in the order of `texts`; finite for an empty text."""
        ...


class QueryEncoder(Encoder, Protocol):
    """A model that encodes queries differently from documents, for which `encode` is used."""

    def encode_queries(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return the vectors of queries, in the form of `encode` for documents."""
        ...


def encode_queries(encoder: Encoder | QueryEncoder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return the vectors of queries, float32 [n, dim], from a symmetric or asymmetric model."""
    # `isinstance` with a protocol would take a tenth of the time of a search in a graph.
    encode: Callable[[Sequence[str]], npt.NDArray[np.float32]]
    encode = getattr(encoder, "encode_queries", encoder.encode)
    return encode(texts)
