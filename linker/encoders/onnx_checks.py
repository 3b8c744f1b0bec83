"""Check a model's graph before ONNX Runtime reads it: only the operators of exported encoders are allowed.

A graph could otherwise hold endless loops, functions, subgraphs, operators that read files, and tensors of its own. The
messages and fields are those of onnx.proto; every other field is refused.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from linker.base.errors import InputError
from linker.base.files import read_regular
from linker.encoders.model_folder import WEIGHTS

MAX_GRAPH = 16 << 20  # maximum size in bytes of a graph's file, without the weights; 64 layers take 7 MiB
MAX_NODES = 1 << 17
# Operators that `linker export` writes, and similar ones that another PyTorch release may choose: each takes time and
# memory proportional to its inputs and output.
OPERATORS = frozenset(
    b"Abs Add And Cast CastLike Ceil Clip Concat Constant ConstantOfShape Conv Div Einsum Equal Erf Exp Expand Flatten "
    b"Floor Gather GatherElements GatherND Gelu Gemm Greater GreaterOrEqual Identity IsInf IsNaN LayerNormalization "
    b"LeakyRelu Less LessOrEqual Log MatMul Max Min Mul Neg Not Or Pad Pow Range Reciprocal ReduceL2 ReduceMax "
    b"ReduceMean ReduceMin ReduceSum Relu Reshape Shape Sigmoid Sign Slice Softmax Softplus Split Sqrt Squeeze Sub Sum "
    b"Tanh Tile Transpose Unsqueeze Where".split()
)
DOMAINS = (b"", b"ai.onnx")
Check = Callable[[bytes], None]
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # protobuf's wire types


class GraphError(ValueError):
    """A graph holds something that no exported encoder contains; the message says what."""


def read_graph(path: Path) -> bytes:
    """Return a graph file's content, checked. Raises InputError unless it is an exported encoder's."""
    try:
        content = read_regular(path, MAX_GRAPH)
        check_graph(content)
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from None
    except GraphError as e:
        raise InputError(f"{path} cannot be run: {e}; export it again, or remove it") from None
    return content


def check_graph(content: bytes) -> None:
    """Raise GraphError unless the model uses only listed operators and its weights are in the file next to it."""
    nodes = 0

    def node(data: bytes) -> None:
        nonlocal nodes
        nodes += 1
        _require(nodes <= MAX_NODES, f"it has more than {MAX_NODES:,} operators")
        _walk(data, NODE)

    graphs = [part for number, part in _fields(content, MODEL) if number == GRAPH]
    _require(len(graphs) == 1, "it holds no graph, or several")
    _walk(content, MODEL)
    _walk(graphs[0], {**GRAPH_FIELDS, 1: node})


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise GraphError(otherwise)


def _walk(data: bytes, fields: dict[int, Check | None]) -> None:
    """Check every field of a message; those without a check are plain values."""
    for number, part in _fields(data, fields):
        if (check := fields[number]) is not None:
            check(part)


def _fields(data: bytes, known: dict[int, Check | None]) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each field of a message; a number's bytes are left out."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, way = key >> 3, key & 7
        _require(number in known, "it holds a field that an exported graph does not have")
        if way == VARINT:
            size = _varint(data, at)[1] - at
        elif way == BYTES:
            size, at = _varint(data, at)
        else:
            _require(way in (FIXED32, FIXED64), "it is damaged")
            size = 4 if way == FIXED32 else 8
        _require(at + size <= end, "it is shorter than the sizes that it declares")
        _require(way == BYTES or known[number] is None, "it is damaged")
        yield number, data[at : at + size] if way == BYTES else b""
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a position, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise GraphError("it is damaged")


def _operator(name: bytes) -> None:
    _require(name in OPERATORS, f"it holds the operator {name[:40]!r}, which no exported encoder needs")


def _domain(name: bytes) -> None:
    _require(name in DOMAINS, f"it holds operators of {name[:40]!r}, which are not ONNX's own")


def _attribute(data: bytes) -> None:
    _walk(data, ATTRIBUTE)


def _tensor(data: bytes) -> None:
    _walk(data, TENSOR)


def _external(data: bytes) -> None:
    entry = dict(_fields(data, ENTRY))
    is_place = entry.get(1) == b"location"
    _require(
        not is_place or entry.get(2) == WEIGHTS.encode(), f"it takes weights from a file other than {WEIGHTS}"
    )


# The fields of each message by number; all others (functions, subgraphs, sparse and nested tensors, segments,
# strings, references) are refused.
ENTRY: dict[int, Check | None] = dict.fromkeys((1, 2))  # key, value
TENSOR: dict[int, Check | None] = dict.fromkeys((1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 14)) | {13: _external}
ATTRIBUTE: dict[int, Check | None] = dict.fromkeys((1, 2, 3, 4, 7, 8, 13, 20)) | {5: _tensor}
NODE: dict[int, Check | None] = dict.fromkeys((1, 2, 3, 6)) | {4: _operator, 5: _attribute, 7: _domain}
GRAPH = 7  # field number of a model's graph
GRAPH_FIELDS: dict[int, Check | None] = dict.fromkeys((2, 10, 11, 12, 13)) | {5: _tensor}
MODEL: dict[int, Check | None] = dict.fromkeys((1, 2, 3, 4, 5, 6, 14)) | {
    GRAPH: lambda _: None,  # checked separately, and its operators are counted
    8: lambda data: _walk(data, {1: _domain, 2: None}),
}
