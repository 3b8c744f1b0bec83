"""Encoding without PyTorch: a model's graph, which `linker export` wrote, run by ONNX Runtime."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linker.encoders.batches import by_length, filled
from linker.encoders.configs import kind_of
from linker.encoders.described import hashed_first, read_described, read_tokenizer
from linker.encoders.model_folder import GRAPH, WEIGHTS
from linker.encoders.weights import hash_file
from linker.errors import InputError
from linker.files import read_regular
from linker.tokens import Tokenizer

FINGERPRINT = (
    "fingerprint"  # the key under which a graph's metadata names the model that it was exported from
)
LEAST = 8  # the graph was traced for texts of at least so many places; padding changes no vector
MAX_GRAPH = 64 << 20  # bytes; the large weights are not in the graph's file


@dataclass
class OnnxEncoder:
    """An Encoder that ONNX Runtime runs: it has the fingerprint of the model that it was exported from."""

    tokenizer: Tokenizer
    max_length: int
    fingerprint: str
    dim: int
    session: Any  # an onnxruntime.InferenceSession

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return float32 [n, dim], L2-normalised, in the order of `texts`; finite for an empty text."""
        ids = self.tokenizer.encode_batch(texts, self.max_length)
        vectors = np.zeros((len(ids), self.dim), dtype=np.float32)
        shown = _bar(len(ids)) if progress else None
        with shown or contextlib.nullcontext():
            for rows in by_length(ids, batch_size):
                padded, mask = filled([ids[row] for row in rows], LEAST)
                (vectors[rows],) = self.session.run(None, {"ids": padded, "mask": mask})
                if shown:
                    shown.update(len(rows))
        return vectors


def _bar(texts: int) -> Any:
    from linker.progress import bar  # a lone query does not wait for its import

    return bar(texts, "encoding", "texts")


def load_onnx(folder: Path) -> OnnxEncoder | None:
    """Return the model in a folder as ONNX Runtime runs it; None where its graph is of other weights or another model.

    Raises InputError where a file of the model is missing or damaged. The graph holds no code but ONNX's operators, and
    reads no file outside the folder.
    """
    (config, max_length), tokenizer = read_described(folder), read_tokenizer(folder)
    start = hashed_first(config, max_length, tokenizer)
    fingerprint = f"{kind_of(config)}-{hash_file(folder / WEIGHTS, start)}"
    session = _session(folder)
    if session.get_modelmeta().custom_metadata_map.get(FINGERPRINT) != fingerprint:
        return None
    dim = int(session.get_outputs()[0].shape[1])
    return OnnxEncoder(tokenizer, max_length, fingerprint, dim, session)


def _session(folder: Path) -> Any:
    import onnxruntime

    path = folder / GRAPH
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = (
        1  # a query is too small to be shared out, and a server has its own threads
    )
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    options.log_severity_level = 4  # what it has to say is in the error
    try:
        content = read_regular(path, MAX_GRAPH)
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from None
    except Exception as e:  # the library's exceptions have no common base
        reason = " ".join(str(e).split())[:200]
        raise InputError(f"{path} cannot be run: {reason}; export it again, or remove it") from None
