"""Machine translation: a protocol, its implementations, and back-translation.

`load_translator` takes "m2m100" or another transformers model by name or path, a file of existing translations, a
command line such as Apertium's, or a dictionary for word-by-word translation.
"""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import orjson

from indexes.errors import importing
from linker.base.errors import InputError, first_line
from linker.base.lines import read_lines
from linker.encoders.foreign import check_foreign
from linker.scoring.pairs.glossing import DictionaryTranslator

M2M100 = "facebook/m2m100_418M"
COMMAND, DICTIONARY = "command:", "dictionary:"
# A back-translation is dropped if the ratio of its length to the text's, in characters, is outside these bounds.
RATIO = (0.5, 2.0)
LANGUAGE_TOKEN = re.compile(r"__\w+__|[a-z]{3}_[A-Z][a-z]{3}")  # M2M100's and NLLB's
Key = tuple[str, str, str]  # source language, target language, text


@runtime_checkable
class Translator(Protocol):
    """The translation interface for augmentation; languages are codes such as "en" and "fr"."""

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the translations of `texts`, in order."""
        ...


def load_translator(name: str | Path) -> Translator:
    """Return the translator that `name` specifies.

    - FILE.tsv or FILE.jsonl: existing translations (`ScriptedTranslator`);
    - "command:apertium -u {source}-{target}": a program that maps lines to lines (`CommandTranslator`);
    - "dictionary:FOLDER/{source}-{target}.tsv": word by word (`DictionaryTranslator`);
    - "m2m100", or any transformers model by name or path (`ModelTranslator`); {source} and {target} in the name select
      one model per direction, as in "Helsinki-NLP/opus-mt-{source}-{target}".

    Raises InputError if the file cannot be read.
    """
    name = str(name)
    if name.startswith(COMMAND):
        return CommandTranslator(name.removeprefix(COMMAND))
    if name.startswith(DICTIONARY):
        return DictionaryTranslator(name.removeprefix(DICTIONARY))
    if name.endswith((".tsv", ".jsonl")):
        return ScriptedTranslator.read(Path(name))
    return ModelTranslator(M2M100 if name == "m2m100" else name)


class ScriptedTranslator:
    """Looks translations up in a table."""

    def __init__(self, entries: Mapping[Key, str], origin: str = "the table") -> None:
        """`entries` maps (source, target, text) to the translation; `origin` is named in errors."""
        self.entries, self._origin = dict(entries), origin

    @classmethod
    def read(cls, path: Path) -> ScriptedTranslator:
        """Read source, target, text and translation from JSON or four columns. Raises InputError with the line."""
        split = _json_fields if path.suffix == ".jsonl" else _tab_fields
        entries: dict[Key, str] = {}
        for number, raw, _ in read_lines(path):
            if not raw.strip():
                continue
            source, target, text, translation = split(raw.decode(errors="replace"), f"{path}:{number}")
            entries[source, target, text] = translation
        return cls(entries, str(path))

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the translations of `texts`. Raises InputError naming the first text without a translation."""
        missing = [text for text in texts if (source, target, text.strip()) not in self.entries]
        if missing:
            raise InputError(
                f"{self._origin} has no {source} → {target} translation of {missing[0][:80]!r} "
                f"(and of {len(missing) - 1} other texts): add them"
            )
        return [self.entries[source, target, text.strip()] for text in texts]


class CommandTranslator:
    """Runs a program that reads texts from stdin and writes their translations to stdout, one per line."""

    def __init__(self, template: str) -> None:
        """`template` is the command, with {source} and {target} in it; it runs without a shell."""
        self._template = template

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the translations, from one run of the program. Raises InputError."""
        codes = {"source": source, "target": target}
        command = [part.format_map(codes) for part in shlex.split(self._template)]
        lines = "".join(" ".join(text.split()) + "\n" for text in texts)
        program = shlex.join(command)
        try:
            process = subprocess.run(
                command, input=lines, capture_output=True, text=True, encoding="utf-8", check=True
            )
        except FileNotFoundError:
            raise InputError(
                f"the translator {program!r} cannot be run: there is no program {command[0]}"
            ) from None
        except subprocess.CalledProcessError as e:
            raise InputError(
                f"the translator {program!r} failed with status {e.returncode}: {e.stderr.strip()}"
            ) from None
        translations = process.stdout.split("\n")[: len(texts)]
        if process.stdout.count("\n") != len(texts):
            raise InputError(
                f"the translator {program!r} gave {process.stdout.count(chr(10))} lines for {len(texts)} texts"
            )
        return translations


class ModelTranslator:
    """Translates with transformers: a model with language codes (M2M100), or one Marian model per direction."""

    def __init__(self, name: str, *, batch_size: int = 16, beams: int = 1, max_length: int = 256) -> None:
        """`name` is a name or path with optional {source} and {target}; `max_length` is in tokens."""
        self._name, self._batch_size, self._beams, self._max_length = name, batch_size, beams, max_length
        self._load = functools.lru_cache(maxsize=2)(_load)

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the translations, decoded greedily or by beam search. Raises InputError, MissingExtraError."""
        import torch

        name = self._name.replace("{source}", source).replace("{target}", target)
        model, tokenizer = self._load(name)
        codes = {} if name != self._name else _languages(tokenizer)
        forced = _begin(tokenizer, name, codes, source, target) if codes else {}
        marks = set(codes.values())
        translations: list[str] = []
        for start in range(0, len(texts), self._batch_size):
            batch = list(texts[start : start + self._batch_size])
            inputs = tokenizer(
                batch, padding=True, truncation=True, max_length=self._max_length, return_tensors="pt"
            )
            with torch.inference_mode():
                ids = model.generate(
                    **inputs, **forced, num_beams=self._beams, max_new_tokens=self._max_length
                )
            rows = [[i for i in row if i not in marks] for row in ids.tolist()]
            translations.extend(tokenizer.batch_decode(rows, skip_special_tokens=True))
        return translations


def back_translate(translator: Translator, texts: Sequence[str], source: str, via: str) -> list[str | None]:
    """Return each text translated to `via` and back, or None if the result is unusable.

    It is unusable if nothing changed, or if its length is less than half or more than twice the text's. Every
    distinct text is translated once.
    """
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    returned = (
        translator.translate(translator.translate(distinct, source, via), via, source) if distinct else []
    )
    usable = {text: _usable(text, back) for text, back in zip(distinct, returned, strict=True)}
    return [usable.get(text) for text in texts]


def _usable(text: str, back: str) -> str | None:
    before, after = " ".join(text.split()), " ".join(back.split())
    same = before.casefold() == after.casefold()
    return None if same or not RATIO[0] <= len(after) / len(before) <= RATIO[1] else after


def _load(name: str) -> tuple[Any, Any]:
    with importing(f"the translator {name!r}", "pretrained"):
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        from transformers.utils import logging
    if Path(name).is_dir():
        check_foreign(Path(name))
    logging.disable_progress_bar()
    for local in (True, False):
        try:
            options = {"local_files_only": local, "trust_remote_code": False}
            tokenizer = AutoTokenizer.from_pretrained(name, **options)
            model = AutoModelForSeq2SeqLM.from_pretrained(name, use_safetensors=True, **options)
            return model.eval(), tokenizer
        except Exception as e:  # given a wrong folder, the library may raise almost anything
            failure = first_line(e)
    raise InputError(
        f"there is no translator {name!r}: no folder of that name that transformers can read, and it could not be "
        f"fetched ({failure}). Give a folder, a FILE.tsv or FILE.jsonl of ready translations, or "
        '"command:PROGRAM … {source} … {target}"'
    )


def _languages(tokenizer: Any) -> dict[str, int]:
    """Return the token id of each language of a tokenizer, by code; empty if the model has one direction only."""
    # The tokenizer of M2M100 does not list its language tokens in its vocabulary.
    if known := getattr(tokenizer, "lang_code_to_id", None):
        return {code: int(row) for code, row in known.items()}
    vocabulary = tokenizer.get_vocab().items()
    return {token.strip("_"): row for token, row in vocabulary if LANGUAGE_TOKEN.fullmatch(token)}


def _begin(tokenizer: Any, name: str, codes: dict[str, int], source: str, target: str) -> dict[str, int]:
    """Set the source language; return the arguments that choose the target's. Raises InputError without them."""
    for code in (source, target):
        if code not in codes:
            raise InputError(
                f"{name} does not support the language {code!r}; it supports {', '.join(sorted(codes)[:12])} …"
            )
    tokenizer.src_lang = source
    return {"forced_bos_token_id": codes[target]}


def _json_fields(line: str, where: str) -> tuple[str, str, str, str]:
    try:
        value = orjson.loads(line)
        fields = [value[name].strip() for name in ("source", "target", "text", "translation")]
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        raise InputError(
            f"{where}: expected an object with source, target, text and translation, all of them strings"
        ) from None
    return fields[0], fields[1], fields[2], fields[3]


def _tab_fields(line: str, where: str) -> tuple[str, str, str, str]:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) != 4:
        raise InputError(
            f"{where}: expected source, target, text, translation separated by tabs, got {len(fields)} fields"
        )
    return fields[0], fields[1], fields[2], fields[3]
