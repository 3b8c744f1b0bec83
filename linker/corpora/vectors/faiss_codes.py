"""Codes and transformations in FAISS files, decoded with numpy: approximations of the vectors that were added."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from indexes.interface import Matrix
from indexes.vectors.faiss_checks import File, WrongError, require

Codes = npt.NDArray[np.uint8]
BLOCK = 1 << 20  # numbers decoded at a time
MOST_BITS = 16  # maximum number of bits in a product quantiser's code
MOST_GROWTH = 1 << 10  # maximum number of bytes of decoded vectors per byte of the file
ROUNDING = 1e-3  # maximum deviation of a rotation's rows from orthonormal ones


@dataclass(frozen=True)
class Decoder:
    """Decodes the rows of `codes`, uint8 [n, size], to vectors, float32 [n, dim]."""

    size: int
    dim: int
    decode: Callable[[Codes], Matrix]

    def into(self, matrix: Matrix, rows: Any, codes: Codes, added: Matrix | None = None) -> None:
        """Write decoded vectors, each plus `added` [dim] if given, to the `rows` of a matrix."""
        step = max(1, BLOCK // (self.dim * MOST_BITS))
        with np.errstate(all="ignore"):  # rows that are not finite are reported later
            for start in range(0, len(codes), step):
                vectors = self.decode(codes[start : start + step])
                matrix[rows[start : start + step]] = vectors if added is None else vectors + added


def empty(file: File, rows: int, dim: int) -> Matrix:
    """Return a matrix for decoded vectors. Raises WrongError if a small file declares a huge one."""
    require(rows * dim * 4 <= MOST_GROWTH * file.size, "it declares far more vectors than it can hold")
    return np.empty((rows, dim), np.float32)


def plain(dim: int) -> Decoder:
    """Return the decoder for uncompressed vectors."""
    return Decoder(4 * dim, dim, lambda codes: codes.view("<f4"))


def scalar(file: File, dim: int) -> Decoder:
    """Read a scalar quantiser, which encodes each coordinate separately."""
    kind, _ = file.take(2, "<i4").tolist()
    file.take(1, "<f4")
    stored_dim, size = (file.one("<u8") for _ in range(2))
    trained = file.vector("<f4")
    require(kind in SCALARS, "its scalar quantiser is of an unsupported kind")
    bits, ranges, decode = SCALARS[kind]
    require(stored_dim == dim and size == (dim * bits + 7) // 8, "its codes have the wrong size")
    require(ranges is None or len(trained) == 2 * (dim if ranges == "each" else 1), "its ranges are missing")
    low, span = trained.reshape(2, -1) if ranges else (None, None)
    return Decoder(size, dim, lambda codes: decode(codes, dim, low, span))


def _ranged(levels: int) -> Callable[..., Matrix]:
    def decode(codes: Codes, dim: int, low: Matrix, span: Matrix) -> Matrix:
        if levels == 16:
            codes = np.stack([codes & 15, codes >> 4], 2).reshape(len(codes), -1)[:, :dim]
        return low + span * ((codes.astype(np.float32) + np.float32(0.5)) / np.float32(levels - 1))

    return decode


def _bfloat16(codes: Codes, *_: object) -> Matrix:
    return (codes.view("<u2").astype(np.uint32) << 16).view(np.float32)


# FAISS's number of the kind of quantiser → bits per coordinate; whether "each" coordinate has a range, "all" share one,
# or there is none; and the function that decodes.
SCALARS: dict[int, tuple[int, str | None, Callable[..., Matrix]]] = {
    0: (8, "each", _ranged(256)),
    1: (4, "each", _ranged(16)),
    2: (8, "all", _ranged(256)),
    3: (4, "all", _ranged(16)),
    4: (16, None, lambda codes, *_: codes.view("<f2").astype(np.float32)),
    5: (8, None, lambda codes, *_: codes.astype(np.float32)),
    7: (16, None, _bfloat16),
    8: (8, None, lambda codes, *_: codes.astype(np.float32) - 128),
}


def product(file: File, dim: int) -> Decoder:
    """Read a product quantiser, which encodes parts of a vector by centroid numbers."""
    stored_dim, parts, bits = (file.one("<u8") for _ in range(3))
    require(stored_dim == dim and 1 <= parts <= dim and dim % parts == 0, "its codes have another dimension")
    require(1 <= bits <= MOST_BITS, "its codes are of an unsupported kind")
    values = file.vector("<f4")
    require(len(values) == dim << bits, "centroids are missing")
    centroids = values.reshape(parts, 1 << bits, dim // parts)
    weights, part = 1 << np.arange(bits), np.arange(parts)

    def decode(codes: Codes) -> Matrix:
        unpacked = np.unpackbits(codes, axis=1, count=parts * bits, bitorder="little")
        numbers = unpacked.reshape(len(codes), parts, bits) @ weights
        return centroids[part, numbers].reshape(len(codes), dim)

    return Decoder((parts * bits + 7) // 8, dim, decode)


@dataclass(frozen=True)
class Transformation:
    """A transformation of vectors from dimension `input` to dimension `output`; `undo` is its inverse."""

    input: int
    output: int
    undo: Callable[[Matrix], Matrix]


def transformation(file: File) -> Transformation:
    """Read a rotation (OPQ, PCA or random), a centring or a normalisation."""
    kind = file.take(4, "|u1").tobytes()
    if kind == b"Pcam":
        power, _ = file.take(2, "<f4").tolist()
        require(power == 0, "its principal components are scaled, which cannot be undone")
        file.take(5, "|u1")
        for _ in range(3):
            file.vector("<f4")  # not needed: the matrix below was computed from these
    if kind in (b"LTra", b"rrot", b"Pcam"):
        return _rotation(file)
    if kind == b"VCnt":
        mean = file.vector("<f4")
        size = _sizes(file)
        require(size == (len(mean), len(mean)), "its centring is damaged")
        return Transformation(*size, lambda vectors: vectors + mean)
    if kind == b"VNrm":
        file.take(1, "<f4")
        size = _sizes(file)
        require(size[0] == size[1], "its normalisation is damaged")
        return Transformation(*size, lambda vectors: vectors)
    raise WrongError(f"it uses a vector transform that linker does not support ({kind!r})")


def _rotation(file: File) -> Transformation:
    has_bias, matrix, bias = file.one("|u1"), file.vector("<f4"), file.vector("<f4")
    inputs, outputs = _sizes(file)
    # Orthonormal rows, at most as many as columns: their product is no larger than the matrix itself.
    require(outputs <= inputs and len(matrix) == inputs * outputs, "its rotation is damaged")
    require(not has_bias or len(bias) == outputs, "its rotation is damaged")
    rotation = matrix.reshape(outputs, inputs)
    with np.errstate(all="ignore"):
        error = np.abs(rotation @ rotation.T - np.eye(outputs, dtype=np.float32))
    require((error <= ROUNDING).all(), "it transforms vectors in a way that cannot be undone")
    shift = bias if has_bias else np.float32(0)
    return Transformation(inputs, outputs, lambda vectors: (vectors - shift) @ rotation)


def _sizes(file: File) -> tuple[int, int]:
    inputs, outputs = file.take(2, "<i4").tolist()
    require(min(inputs, outputs) >= 1 and file.one("|u1") in (0, 1), "its transformation is damaged")
    return inputs, outputs
