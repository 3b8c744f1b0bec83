"""Translators by language, and translations cached in a file, because translation is slow."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from linker.base.progress import bar
from linker.scoring.pairs.data import by_language
from linker.scoring.pairs.journal import Journal
from linker.scoring.pairs.translate import Key, Translator, load_translator

BATCH = 64  # maximum number of texts that an interrupted run translates again


def read_translators(values: Sequence[str]) -> dict[str, str]:
    """Return translators by language from option values: "NAME" for all languages, "de=NAME" for one.

    NAME is an argument of `load_translator`. Raises InputError if a language is repeated.
    """
    return by_language(values, "two translators")


class ByLanguage:
    """Translates each language with its own translator; texts in a language without one are left unchanged."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names` maps languages to arguments of `load_translator`, with "" for all other languages."""
        self._names = dict(names)
        self._loaded: dict[str, Translator] = {}

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the translations, in the order of `texts`. Raises the translators' errors."""
        name = self._names.get(source, self._names.get(""))
        if name is None or source == target or not texts:
            return list(texts)
        if name not in self._loaded:
            self._loaded[name] = load_translator(name)
        return self._loaded[name].translate(texts, source, target)


class KeptTranslator:
    """A translator that appends each batch to a file for `load_translator`, so that a killed run can continue."""

    def __init__(self, translator: Translator, path: Path) -> None:
        """Read the file, if any, up to a line truncated by a crash. Raises InputError for a file of another kind."""
        self._translator = translator
        self._known: dict[Key, str] = {}
        self._file = Journal(path, "translations", self._take)

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return the translations, from the file or else from the translator. Raises the translator's errors."""
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
