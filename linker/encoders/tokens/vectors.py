"""Word vectors, read from files or trained on a corpus: a matrix with one row per id of a tokenizer."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from indexes.dtypes import Float32Array
from indexes.errors import importing
from linker.base.errors import InputError
from linker.base.lines import DamagedInputError, read_lines
from linker.encoders.tokens.pieces import PieceTokenizer, load_tokenizer
from linker.encoders.tokens.words import PAD, UNK, Tokenizer, Vocabulary, WordTokenizer, tokenize

MAX_VECTOR_LINE = 1 << 20
MAX_NUMBER = 1e9
ACCEPTED = (
    "word vectors are a text file (GloVe, word2vec or fastText), or a .safetensors file of one matrix with its "
    "tokenizer.json next to it"
)


@dataclass(frozen=True, eq=False)
class WordVectors:
    """One vector per id: `matrix` float32 [size, d], 0 for padding; `known`, bool [size]: is it from the source?"""

    tokenizer: Tokenizer
    matrix: Float32Array
    known: npt.NDArray[np.bool_]


def load_word_vectors(path: Path, vocabulary: Vocabulary | None = None, *, seed: int = 0) -> WordVectors:
    """Read word vectors for the words of `vocabulary` or, without one, for all words in the file's order.

    Sources are text files of GloVe, word2vec and fastText (with or without their first line of counts, also gzipped),
    and .safetensors files of one matrix next to a tokenizer.json, of word pieces or of `linker train` (a word of
    `vocabulary` gets the mean of its pieces); a folder means its model.safetensors. If a word is repeated, its first
    vector counts; words without one get random vectors with the others' standard deviation. Raises InputError naming
    file and line, MissingExtraError if reading the matrix or the pieces needs a library.
    """
    if path.is_dir():
        return _load_matrix(path / "model.safetensors", vocabulary, seed)
    if path.suffix == ".safetensors":
        return _load_matrix(path, vocabulary, seed)
    if path.suffix == ".bin":
        raise InputError(
            f"{path}: binary word2vec files are not supported: save it as text (save_word2vec_format of gensim)"
        )
    accepted = None if vocabulary is None else vocabulary.ids
    row_of: dict[str, int] = {}
    rows: list[Float32Array] = []
    for line, word, numbers in _read_text(path):
        if word in row_of or (accepted is not None and word not in accepted):
            continue
        row_of[word] = len(rows)
        rows.append(_vector(path, line, numbers))
    if not rows:
        raise InputError(
            f"{path}: no vector for any of the {len(vocabulary or ()) - 2} words of the vocabulary"
        )
    vocabulary = vocabulary or Vocabulary.of(row_of)
    matrix = np.zeros((len(vocabulary), len(rows[0])), np.float32)
    known = np.zeros(len(vocabulary), np.bool_)
    for word, row in row_of.items():
        matrix[vocabulary.ids[word]], known[vocabulary.ids[word]] = rows[row], True
    return _complete(WordTokenizer(vocabulary), matrix, known, seed)


def train_word_vectors(
    texts: Sequence[str],
    *,
    dim: int = 128,
    epochs: int = 5,
    min_count: int = 2,
    max_size: int | None = None,
    seed: int = 0,
) -> WordVectors:
    """Train word2vec by skip-grams (Mikolov et al. 2013), reproducibly. Raises MissingExtraError, InputError."""
    with importing("training word vectors", "vectors"):
        from gensim.models import Word2Vec
    counts = Counter(token for text in texts for token in tokenize(text))
    vocabulary = Vocabulary.of_counts(counts, min_count, max_size)
    if len(vocabulary) <= UNK + 1:
        raise InputError(
            f"no word occurs {min_count} times in the {len(texts)} texts: lower the minimum count"
        )
    model = Word2Vec(vector_size=dim, window=5, min_count=1, sg=1, workers=1, seed=seed)
    model.build_vocab_from_freq({token: counts[token] for token in vocabulary.tokens[UNK + 1 :]})
    model.train(_Sentences(texts, vocabulary), total_examples=len(texts), epochs=epochs)
    matrix = np.zeros((len(vocabulary), dim), np.float32)
    matrix[UNK + 1 :] = model.wv[vocabulary.tokens[UNK + 1 :]]
    known = np.arange(len(vocabulary)) > UNK
    return _complete(WordTokenizer(vocabulary), matrix, known, seed)


class _Sentences:
    """The texts' known tokens, tokenized again for each pass; gensim reads at most 10,000 tokens per sentence."""

    def __init__(self, texts: Sequence[str], vocabulary: Vocabulary) -> None:
        self._texts, self._ids = texts, vocabulary.ids

    def __iter__(self) -> Iterator[list[str]]:
        for text in self._texts:
            yield [token for token in tokenize(text) if token in self._ids]


def _complete(
    tokenizer: Tokenizer, matrix: Float32Array, known: npt.NDArray[np.bool_], seed: int
) -> WordVectors:
    """Fill the unknown rows of `matrix` [size, d] with random numbers and that of padding with zeros."""
    known[PAD] = False
    spread = float(matrix[known].std()) if known.any() else 1.0
    random = np.random.default_rng(seed).normal(0.0, spread, matrix.shape).astype(np.float32)
    matrix[~known] = random[~known]
    matrix[PAD] = 0.0
    return WordVectors(tokenizer, matrix, known)


def _read_text(path: Path) -> Iterator[tuple[int, str, list[bytes]]]:
    """Yield line number, word and numbers. Single spaces separate fields: words may contain any other white space.

    The first line sets the number of dimensions; a word that contains spaces (GloVe has some) is kept whole.
    """
    dim, promised, last = 0, None, 0
    try:
        for number, raw, size in read_lines(path, MAX_VECTOR_LINE):
            fields = raw.rstrip().split(b" ")
            if size > len(raw):
                raise InputError(
                    f"{path}:{number}: a line of {size:,} bytes: this is not a text file of vectors"
                )
            if number == 1 and len(fields) == 2 and all(f.isdigit() for f in fields):
                promised, dim = (int(f) for f in fields)
                continue
            dim = dim or len(fields) - 1
            if not dim or len(fields) <= dim:
                raise InputError(
                    f"{path}:{number}: {len(fields) - 1} numbers after the word, expected {dim or 'some'}"
                )
            last += 1
            yield number, b" ".join(fields[:-dim]).decode(errors="replace"), fields[-dim:]
    except DamagedInputError as e:
        raise InputError(f"{e}; download the file again") from None
    if not last:
        raise InputError(f"{path} is empty: it holds no vectors")
    if promised is not None and last != promised:
        raise InputError(
            f"{path}: the first line promises {promised} words, but the file holds {last}: download it again"
        )


def _vector(path: Path, line: int, fields: Sequence[bytes]) -> Float32Array:
    try:
        numbers = [float(field) for field in fields]
    except ValueError as e:
        raise InputError(f"{path}:{line}: {e}; {ACCEPTED}") from None
    if not all(-MAX_NUMBER < n < MAX_NUMBER for n in numbers):  # also false for NaN
        raise InputError(f"{path}:{line}: NaN, infinity or a number beyond {MAX_NUMBER:g}")
    return np.array(numbers, np.float32)


def _load_matrix(path: Path, vocabulary: Vocabulary | None, seed: int) -> WordVectors:
    """Read the vectors in a .safetensors file, whose rows are the ids of the tokenizer.json next to it."""
    beside = path.with_name("tokenizer.json")
    if path.is_file() and not beside.is_file():
        raise InputError(
            f"{path}: there is no tokenizer.json next to it, which would name the word of each row; {ACCEPTED}"
        )
    tokenizer = load_tokenizer(beside)
    pieces = _read_safetensors(path)
    if len(pieces) != tokenizer.size:
        raise InputError(f"{path}: {len(pieces)} vectors, but {beside.name} has {tokenizer.size} ids")
    if vocabulary is None:
        return _complete(tokenizer, pieces, np.ones(len(pieces), np.bool_), seed)
    unknown = tokenizer.unknown if isinstance(tokenizer, PieceTokenizer) else UNK
    matrix = np.zeros((len(vocabulary), pieces.shape[1]), np.float32)
    known = np.zeros(len(vocabulary), np.bool_)
    for i, ids in enumerate(tokenizer.encode_batch(vocabulary.tokens, 1 << 16)):
        if i > UNK and (ids := [j for j in ids if j != unknown]):
            matrix[i], known[i] = pieces[ids].mean(axis=0), True
    return _complete(WordTokenizer(vocabulary), matrix, known, seed)


def _read_safetensors(path: Path) -> Float32Array:
    """Return the only matrix of a file as float32 [n, d]; integers are divided by their type's maximum."""
    with importing("a .safetensors file", "train"):
        from safetensors import SafetensorError, safe_open
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            tensors = [t for t in map(file.get_tensor, names) if t.ndim == 2]
    except (OSError, SafetensorError, TypeError) as e:  # TypeError: a dtype that numpy lacks (bfloat16)
        raise InputError(f"cannot read {path}: {e}") from None
    if len(tensors) != 1:
        raise InputError(
            f"{path}: expected one matrix of vectors, found {len(tensors)} among {', '.join(names[:20]) or 'none'}; "
            f"{ACCEPTED}"
        )
    (matrix,) = tensors
    whole = np.issubdtype(matrix.dtype, np.integer)
    result: Float32Array = matrix.astype(np.float32) / (np.iinfo(matrix.dtype).max if whole else 1)
    if not np.isfinite(result).all():
        raise InputError(f"{path}: NaN or infinity among the vectors")
    return result
