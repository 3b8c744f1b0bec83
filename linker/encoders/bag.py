"""The mean of word vectors, with an optional learned projection: the baseline for other encoders to beat."""

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn
from torch.nn import functional

from linker.encoders.configs import BagConfig


class BagOfVectors(nn.Module):
    """Maps token ids to the mean of their vectors, not normalised; a token's weight is the length of its vector."""

    def __init__(self, config: BagConfig, tokens: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, config.dim, padding_idx=0)
        size = config.projection
        self.projection = nn.Identity() if size is None else nn.Linear(config.dim, size, bias=False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map ids, int64 [B, L], and their mask, bool [B, L] (True: a token), to vectors [B, d], 0 for empty texts."""
        lengths = mask.sum(1)
        starts = lengths.cumsum(0) - lengths  # concatenated texts, so that no [B, L, d] array is allocated
        mean = functional.embedding_bag(
            ids[mask], self.embedding.weight, starts, mode="mean", sparse=self.embedding.sparse
        )
        projected: Tensor = self.projection(mean)
        return projected


def sif_scaled(
    vectors: npt.NDArray[np.float32], counts: npt.NDArray[np.int64], a: float = 1e-3
) -> npt.NDArray[np.float32]:
    """Return vectors [n, d] scaled by smooth inverse frequency, a/(a + p(w)): float32 [n, d] (Arora, Liang & Ma, 2017).

    `counts`, int64 [n], are the tokens' frequencies; a token that never occurs keeps its vector. The mean of the
    scaled vectors has the direction of the weighted mean, so any encoder can start from them and refine the weights.
    """
    share = counts / max(int(counts.sum()), 1)
    return (vectors * (a / (a + share))[:, None]).astype(np.float32)
