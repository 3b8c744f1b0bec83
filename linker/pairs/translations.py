"""Translators by language, and translations that are kept in a file, because translation is slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from linker.errors import InputError
from linker.pairs.data import by_language
from linker.pairs.translate import ScriptedTranslator, Translator, load_translator


def read_translators(values: Sequence[str]) -> dict[str, str]:
    """Return translators by language from option values: "NAME" for all languages, "de=NAME" for one.

    NAME is what `load_translator` takes. Raises InputError where a language is repeated.
    """
    return by_language(values, "two translators")


class ByLanguage:
    """Translates each language by its own translator; a language that has none stays as it is."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names` maps languages to what `load_translator` takes, with "" for all other languages."""
        self._names = dict(names)
        self._loaded: dict[str, Translator] = {}

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the translations, in the order of `texts`. Raises as the translators do."""
        name = self._names.get(source, self._names.get(""))
        if name is None or source == target or not texts:
            return list(texts)
        if name not in self._loaded:
            self._loaded[name] = load_translator(name)
        return self._loaded[name].translate(texts, source, target)


class KeptTranslator:
    """A translator whose translations are appended to a file, which is also one that `load_translator` takes."""

    def __init__(self, translator: Translator, path: Path) -> None:
        """Read the file if it exists. Raises InputError where it is not of translations."""
        self._translator, self._path = translator, path
        self._known = ScriptedTranslator.read(path).entries if path.exists() else {}

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the translations, from the file or else from the translator."""
        new = list(dict.fromkeys(t for t in texts if (source, target, t.strip()) not in self._known))
        if new:
            made = self._translator.translate(new, source, target)
            lines = []
            for text, translation in zip(new, made, strict=True):
                self._known[source, target, text.strip()] = translation.strip()
                fields = {"source": source, "target": target, "text": text, "translation": translation}
                lines.append(orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE))
            try:
                with self._path.open("ab") as file:
                    file.write(b"".join(lines))
            except OSError as e:
                raise InputError(f"cannot write the translations file {self._path}: {e.strerror}") from e
        return [self._known[source, target, text.strip()] for text in texts]
