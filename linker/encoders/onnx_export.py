"""Export of a model from `linker train` to ONNX: the graph of its forward pass; the weights stay where they are.

The graph is traced from the PyTorch module, so that both compute the same; in the graph, Newton's method for α-entmax
takes a fixed number of steps. The graph's file refers to the tensors in model.safetensors next to it by offset.
"""

import logging
import struct
import warnings
from pathlib import Path
from typing import Any

import orjson
import torch
from torch import Tensor, nn
from torch.nn import functional

from indexes.errors import importing
from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.encoders.bag import BagOfVectors
from linker.encoders.batches import filled
from linker.encoders.entmax import entmax
from linker.encoders.folder import load
from linker.encoders.gru import Gru
from linker.encoders.key_inputs import occurrences_by_pairs
from linker.encoders.model_folder import GRAPH, WEIGHTS
from linker.encoders.onnx_model import FINGERPRINT, LEAST
from linker.encoders.star import StarTransformer, masked_mean

OPSET = 18
MODULE = "module."  # prefix of the weights' names in the traced module


def export(folder: Path) -> Path:
    """Write the graph of the model in `folder` next to its weights, and return its path.

    Raises InputError if the folder holds no model from `linker train`, or one with recurrent layers;
    MissingExtraError without the packages that the export needs.
    """
    with importing("exporting to ONNX", "export"):
        import onnx_ir
        import onnxscript  # noqa: F401  # PyTorch needs it, and its error would not name the extra
    encoder = load(folder)
    if isinstance(encoder.module, Gru):
        raise InputError(
            f"{folder} is a {encoder.kind} model: recurrent layers cannot be exported; run it with PyTorch"
        )
    if isinstance(encoder.module, StarTransformer):
        _make_traceable(encoder.module)
    model = _trace(encoder.module.eval())
    _refer(model.graph, folder / WEIGHTS)
    _strip(model)
    model.metadata_props[FINGERPRINT] = encoder.fingerprint
    write_atomically(folder / GRAPH, onnx_ir.to_proto(model).SerializeToString(deterministic=True))
    return folder / GRAPH


def _make_traceable(star: StarTransformer) -> None:
    """Replace functions of a star encoder with equivalent ones that can be exported as a graph."""
    if star.key_inputs is not None:
        star.key_inputs.find = occurrences_by_pairs
    for attention in star.attentions().values():
        attention.entmax = entmax


class _Normalised(nn.Module):
    """A model with L2-normalised vectors; the mean of word vectors uses operators that ONNX has."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        if isinstance(self.module, BagOfVectors):
            vectors = self.module.projection(masked_mean(self.module.embedding(ids), mask))
        else:
            vectors = self.module(ids, mask)
        return functional.normalize(vectors, dim=-1)


def _trace(module: nn.Module) -> Any:
    texts, tokens = torch.export.Dim("texts", min=1), torch.export.Dim("tokens", min=LEAST)
    example = tuple(torch.from_numpy(x) for x in filled([[1] * (LEAST + 3), [1] * 5, [1]]))
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # warnings about axis names and deprecations
            program = torch.onnx.export(
                _Normalised(module),
                example,
                input_names=["ids", "mask"],
                output_names=["vectors"],
                dynamic_shapes=({0: texts, 1: tokens}, {0: texts, 1: tokens}),
                opset_version=OPSET,
                dynamo=True,
                optimize=False,  # optimising would copy weights into the graph; ONNX Runtime does it on loading
                verbose=False,
            )
    finally:
        logger.setLevel(level)
    assert program is not None
    return program.model


def _refer(graph: Any, weights: Path) -> None:
    """Make the graph refer to the weights file for the tensors that are in it."""
    import onnx_ir

    with weights.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = orjson.loads(file.read(size))
    for name, value in graph.initializers.items():
        place = header.get(name.removeprefix(MODULE))
        if place is not None and place["shape"] == list(value.const_value.shape):
            start, end = place["data_offsets"]
            value.const_value = onnx_ir.ExternalTensor(
                WEIGHTS, 8 + size + start, end - start, value.dtype, shape=value.shape, name=name
            )


def _strip(model: Any) -> None:
    """Remove the exporter's notes on the source code, which are most of the file and contain paths."""
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    ClearMetadataAndDocStringPass()(model)
