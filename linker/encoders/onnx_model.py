"""Encoding without PyTorch: a model's graph, written by `linker export`, run by ONNX Runtime."""

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from linker.base.errors import InputError
from linker.encoders.batches import by_length, filled
from linker.encoders.configs import StarConfig, kind_of
from linker.encoders.described import hashed_first, read_described, read_tokenizer
from linker.encoders.model_folder import GRAPH, WEIGHTS
from linker.encoders.onnx_checks import read_graph
from linker.encoders.tokens import Tokenizer
from linker.encoders.weights import hash_file

FINGERPRINT = "fingerprint"  # metadata key: the fingerprint of the model that the graph was exported from
LEAST = 8  # the graph was traced for texts of at least this many positions; padding changes no vector
SECONDS = 30.0  # time limit for a batch, which takes at most a second, and for loading the graph
MEMORY = 4 << 30  # bytes that all graphs in this process may use for their values
ROUNDING = 1e-3  # maximum deviation of a vector's length from 1
T = TypeVar("T")


@dataclass
class OnnxEncoder:
    """An Encoder that ONNX Runtime runs: it has the fingerprint of the model that it was exported from."""

    tokenizer: Tokenizer
    max_length: int
    fingerprint: str
    dim: int
    session: Any  # an onnxruntime.InferenceSession
    path: Path  # path of the graph, for messages
    _late: bool = False

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return float32 [n, dim], L2-normalised, in order. Raises InputError if the graph returns anything else."""
        ids = self.tokenizer.encode_batch(texts, self.max_length)
        vectors = np.zeros((len(ids), self.dim), dtype=np.float32)
        shown = _bar(len(ids)) if progress else None
        with shown or contextlib.nullcontext():
            for rows in by_length(ids, batch_size):
                padded, mask = filled([ids[row] for row in rows], LEAST)
                vectors[rows] = self._run(padded, mask)
                if shown:
                    shown.update(len(rows))
        return vectors

    def _run(self, ids: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
        import onnxruntime

        options = onnxruntime.RunOptions()
        try:
            if self._late:
                raise TimeoutError
            (vectors,) = _in_time(lambda: self.session.run(["vectors"], {"ids": ids, "mask": mask}, options))
        except TimeoutError:
            options.terminate, self._late = True, True  # the run ends after the current operator
            raise _unusable(self.path, f"it takes more than {SECONDS:g} seconds for a batch") from None
        except Exception as e:  # the library's exceptions have no common base
            raise _unusable(self.path, str(e)) from None
        if getattr(vectors, "shape", None) != (len(ids), self.dim) or vectors.dtype != np.float32:
            raise _unusable(self.path, f"it does not give float32 vectors of {self.dim} dimensions")
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(vectors, axis=1)
        if not ((lengths == 0) | (np.abs(lengths - 1) <= ROUNDING)).all():
            raise _unusable(self.path, "it gives vectors whose length is not 1")
        result: npt.NDArray[np.float32] = vectors
        return result


def _in_time(work: Callable[[], T]) -> T:
    """Return the result of `work`. Raises TimeoutError after `SECONDS`, and the errors of `work`.

    It runs in a thread, which is abandoned after a timeout, because an operator cannot be interrupted.
    """
    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as e:
            future.set_exception(e)

    threading.Thread(target=run, daemon=True).start()
    return future.result(SECONDS)


def _unusable(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path} cannot be run: {' '.join(reason.split())[:200]}; export it again, or remove it"
    )


def _bar(texts: int) -> Any:
    from linker.base.progress import bar  # a single query need not wait for this import

    return bar(texts, "encoding", "texts")


def load_onnx(folder: Path) -> OnnxEncoder | None:
    """Return the model in a folder, run by ONNX Runtime; None if its graph is for other weights or another model.

    Raises InputError if a file of the model is missing or damaged. The graph holds only listed operators, and reads
    no file but the weights.
    """
    (config, max_length), tokenizer = read_described(folder), read_tokenizer(folder)
    start = hashed_first(config, max_length, tokenizer)
    fingerprint = f"{kind_of(config)}-{hash_file(folder / WEIGHTS, start)}"
    session, exported_from = _session(folder)
    if exported_from != fingerprint:
        return None
    dim = config.dim if isinstance(config, StarConfig) else config.output
    return OnnxEncoder(tokenizer, max_length, fingerprint, dim, session, folder / GRAPH)


def _session(folder: Path) -> tuple[Any, str | None]:
    """Return the session of a folder's graph, and the fingerprint of the model that it was exported from."""
    import onnxruntime

    content = read_graph(folder / GRAPH)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # a query is too small to parallelise, and a server has its own threads
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.log_severity_level = 4  # the exceptions hold the messages
    try:
        _limit_memory()
        session = _in_time(
            lambda: onnxruntime.InferenceSession(
                content,
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=["ConstantFolding"],  # constant folding ignores the memory limit
                enable_fallback=0,  # a fallback prints to stdout and tries again
            )
        )
        return session, session.get_modelmeta().custom_metadata_map.get(FINGERPRINT)
    except TimeoutError:
        raise _unusable(folder / GRAPH, f"it takes more than {SECONDS:g} seconds to load") from None
    except Exception as e:  # the library's exceptions have no common base
        raise _unusable(folder / GRAPH, str(e)) from None


@functools.cache
def _limit_memory() -> None:
    """Make all sessions in this process allocate their tensors from one pool of `MEMORY` bytes."""
    import onnxruntime as library

    kind = library.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    place = library.OrtMemoryInfo("Cpu", kind, 0, library.OrtMemType.DEFAULT)
    library.create_and_register_allocator(place, library.OrtArenaCfg({"max_mem": MEMORY}))
