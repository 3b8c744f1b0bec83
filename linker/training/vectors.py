"""The initial word vectors of a model: from a file, or learned from the texts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg

from indexes.arrays import normalised
from indexes.dtypes import Float32Array
from linker.encoders.bag import sif_scaled
from linker.encoders.tokens import (
    PAD,
    UNK,
    Tokenizer,
    Vocabulary,
    WordTokenizer,
    load_word_vectors,
    train_word_vectors,
)
from linker.training.config import DataConfig

WHOLE = 1 << 30  # a maximum number of tokens so large that no text is truncated when words are counted
LEARNED = ("gensim", "lsa", "random")  # any other value of word_vectors is a path
DENSE = 3000  # up to this number of texts, solving a dense eigenvalue problem is faster


def start_vectors(data: DataConfig, texts: Sequence[str], seed: int) -> tuple[Tokenizer, Float32Array]:
    """Return a tokenizer and a vector per id, float32 [size, d]. Raises InputError, MissingExtraError."""
    tokenizer, matrix = _sources(data, texts, seed)
    latent = matrix is None or (data.lsa_dim and data.word_vectors not in LEARNED)
    # encoded only once, since this takes long for a corpus
    ids = tokenizer.encode_batch(texts, WHOLE) if latent or data.sif else []
    if matrix is None:
        matrix = lsa_vectors(ids, tokenizer.size, data.dim)
    elif latent:
        matrix = _with_lsa(matrix, ids, data)
    if data.sif:
        matrix = sif_scaled(matrix, token_counts(ids, tokenizer.size), data.sif)
    return tokenizer, unit_spread(matrix) if data.rescale else matrix


def _sources(data: DataConfig, texts: Sequence[str], seed: int) -> tuple[Tokenizer, Float32Array | None]:
    """Return a tokenizer and its vectors, or None if they are to be made from the texts' tokens."""
    if data.word_vectors == "gensim":
        vectors = train_word_vectors(
            texts, dim=data.dim, epochs=data.word_epochs, min_count=data.min_count,
            max_size=data.max_vocabulary, seed=seed,
        )  # fmt: skip
        return vectors.tokenizer, vectors.matrix
    if data.word_vectors not in LEARNED:
        vectors = load_word_vectors(Path(data.word_vectors), seed=seed)
        return vectors.tokenizer, vectors.matrix
    words = WordTokenizer(Vocabulary.build(texts, min_count=data.min_count, max_size=data.max_vocabulary))
    if data.word_vectors == "lsa":
        return words, None
    return words, np.random.default_rng(seed).normal(0, 1, (words.size, data.dim)).astype(np.float32)


def _with_lsa(matrix: Float32Array, ids: Sequence[Sequence[int]], data: DataConfig) -> Float32Array:
    """Append the corpus's latent dimensions to general vectors, in proportion to each general vector's length."""
    latent = lsa_vectors(ids, len(matrix), data.lsa_dim)
    latent = normalised(latent)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.hstack([matrix, data.lsa_weight * lengths * latent])


def token_counts(ids: Sequence[Sequence[int]], size: int) -> npt.NDArray[np.int64]:
    """Return how often each id below `size` occurs in texts of token `ids`, int64 [size]."""
    flat = np.array([i for text in ids for i in text], dtype=np.int64)
    return np.bincount(flat, minlength=size)


def unit_spread(matrix: Float32Array) -> Float32Array:
    """Return float32 [size, d] scaled to nonzero rows of mean length 1; the row of padding becomes 0."""
    lengths = np.linalg.norm(matrix, axis=1)
    scaled = matrix / max(float(lengths[lengths > 0].mean()) if lengths.any() else 1.0, 1e-12)
    scaled[PAD] = 0
    return scaled.astype(np.float32)


def lsa_vectors(ids: Sequence[Sequence[int]], size: int, dim: int, a: float = 1e-4) -> Float32Array:
    """Return latent semantic vectors of words (Deerwester et al., 1990), float32 [size, d].

    d is at most `dim` and the rank of the texts. The vectors are the right singular vectors of the row-normalised
    texts-by-words matrix of (1 + ln tf) · a/(a + p(w)), not scaled by singular values. For a small corpus, they are far
    better than word2vec, which needs pairs of words to recur. The rows of padding and unknown words are 0.
    """
    counts = token_counts(ids, size)
    weights = a / (a + counts / max(int(counts.sum()), 1))
    rows = np.repeat(np.arange(len(ids)), [len(text) for text in ids])
    columns = np.array([i for text in ids for i in text], dtype=np.int64)
    x = sparse.csr_array((np.ones(len(columns)), (rows, columns)), shape=(len(ids), size))
    x.data = (1 + np.log(x.data)) * weights[x.indices]
    lengths = np.sqrt(np.bincount(_rows_of(x), x.data**2, minlength=len(ids)))
    x.data /= lengths[_rows_of(x)]
    left, values = _left_singular(x, min(dim, len(ids) - 1))
    vectors = (np.asarray(x.T @ left) / values).astype(np.float32)
    vectors[[PAD, UNK]] = 0
    return vectors


def _rows_of(x: sparse.csr_array) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))


def _left_singular(x: sparse.csr_array, k: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return at most the k leading left singular vectors [n, k] and values [k]; zero values are left out."""
    if x.shape[0] <= DENSE:
        squares, vectors = linalg.eigh((x @ x.T).toarray())
        squares, vectors = squares[::-1][:k], vectors[:, ::-1][:, :k]
    else:
        left, values, _ = sparse_linalg.svds(x, k=k, random_state=0)
        squares, vectors = values**2, left
    nonzero = squares > 1e-10 * squares.max()
    return vectors[:, nonzero], np.sqrt(squares[nonzero])
