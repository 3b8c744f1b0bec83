"""Translators by language, and translations that are kept in a file, because translation is slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from linker.base.progress import bar
from linker.scoring.pairs.data import by_language
from linker.scoring.pairs.kept import KeptFile
from linker.scoring.pairs.translate import Key, Translator, load_translator

BATCH = 64  # texts: what an interrupted run translates again at most


def read_translators(values: Sequence[str]) -> dict[str, str]:
    """Return translators by language from option values: "NAME" for all languages, "de=NAME" for one.

    NAME is what `load_translator` takes. Raises InputError if a language is repeated.
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
    """A translator whose translations are appended to a file, which is also one that `load_translator` takes.

    It translates in batches and keeps each at once: an interrupted or killed run continues from there.
    """

    def __init__(self, translator: Translator, path: Path) -> None:
        """Read the file if it exists; a last line that a crash cut off is translated again.

        Raises InputError if the file is not of translations.
        """
        self._translator = translator
        self._known: dict[Key, str] = {}
        self._file = KeptFile(path, "translations", self._take)

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the translations, from the file or else from the translator. Raises as that does."""
        known = self._known
        new = list(dict.fromkeys(t for t in texts if (source, target, t.strip()) not in known))
        with bar(len(new), f"translating from {source}", "texts") as shown:
            for start in range(0, len(new), BATCH):
                batch = new[start : start + BATCH]
                self._keep(batch, self._translator.translate(batch, source, target), source, target)
                shown.update(len(batch))
        return [known[source, target, text.strip()] for text in texts]

    def _keep(self, texts: Sequence[str], translations: Sequence[str], source: str, target: str) -> None:
        entries = [
            {"source": source, "target": target, "text": text, "translation": translation}
            for text, translation in zip(texts, translations, strict=True)
        ]
        self._file.add(entries)
        for entry in entries:
            self._take(entry)

    def _take(self, entry: Mapping[str, str]) -> None:
        self._known[entry["source"], entry["target"], entry["text"].strip()] = entry["translation"].strip()
