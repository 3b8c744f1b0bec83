"""The two sides of a link: files, folders or indexes, read once, and whether both are in one language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from indexes.address import Address
from indexes.interface import Document
from indexes.store import manifest as manifests
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.base.terminal import quantity
from linker.corpora import BadLine, Columns
from linker.corpora.guessing import describe
from linker.corpora.languages import CODES, LISTS, guess_language, script_language
from linker.corpora.records import report_skipped
from linker.crosslingual.pages.pages import UNKNOWN, Pages, language_of, pages_from, read_documents
from linker.engine.engine import Engine
from linker.scoring.pairs.words import CHARACTER_OR_WORD

TEXTS, CHARACTERS = 500, 2000  # maximum numbers of texts examined per side, and of characters per text
FREQUENT, KNOWN = 50, 500  # how many frequent words of one side are looked up in how many of the other
SHARED = 0.25  # minimum result of `_shared` for two collections in one language
ENOUGH = 500  # if both sides have at least this many words, a lower result shows that there are two languages
# There are 24 function words per language. A side's language is clear if at least CLEAR of its words, and at least
# CLEAR_SHARE of them, are that language's function words. A side is not in another language if that one's function
# words are at most FOREIGN times as frequent in it as those of its own.
CLEAR, CLEAR_SHARE, FOREIGN = 2, 0.05, 1 / 3


@dataclass(frozen=True, eq=False)
class Side:
    """One side: the files, folders or indexes that it was read from (none if from memory), and its documents by id.

    `code`: its language ("und" if unknown); `engine`: its index, if it is one.
    """

    paths: tuple[Path, ...]
    documents: Mapping[str, Document]
    code: str
    engine: Engine | None = None
    skipped: tuple[BadLine, ...] = ()

    @property
    def name(self) -> str:
        """The paths, for messages."""
        return ", ".join(map(str, self.paths))

    @property
    def pages(self) -> Pages:
        """The documents as pages of a language."""
        return pages_from(self.documents, self.code, self.skipped)


def is_index(path: Path) -> bool:
    """Return whether a path names an index: its directory, or its address on a cluster."""
    return Address.of(path) is not None or (path / manifests.NAME).is_file()


def side_of(path: Path, code: str | None, columns: Columns | None, encoder: str | None = None) -> Side:
    """Read a side. Raises the same InputErrors as `read_documents`, IndexesError if an index cannot be opened."""
    if is_index(path):
        engine = Engine.open(path, encoder=encoder if not has_encoder(path) else None)
        documents = {d.id: d for d in engine.documents()}
        if not documents:
            raise InputError(f"{path} holds no documents: there is nothing to link")
        name = engine.collection.manifest.analysis.language
        side = Side((path,), documents, code or CODES.get(name, UNKNOWN), engine)
    else:
        if words := describe(path, columns or Columns()):
            logger.info(words)
        found, skipped = read_documents(path, columns)
        side = Side((path,), found, code or language_of(path, found), None, skipped)
        report_skipped(skipped)
    language = "" if side.code == UNKNOWN else f", language {side.code}"
    logger.info("%s: %s%s", path, quantity(len(side.documents), "text"), language)
    return side


def has_encoder(path: Path) -> bool:
    """Return whether the index in a directory names the encoder of its vectors."""
    return Address.of(path) is None and manifests.load(path).embeds


def same_language(source: Side, target: Side) -> bool:
    """Return whether both sides are in one language: by their codes or, if one is unknown, by their words.

    Scripts decide first, then function words, of which a few suffice, and then frequent words: two collections in one
    language share them, whatever their subject. If nothing decides, one language is assumed, with a warning.
    """
    if UNKNOWN not in (source.code, target.code):
        return source.code == target.code
    one, other = (_frequencies(side.documents.values()) for side in (source, target))
    scripts = {script_language("".join(side.elements())) for side in (one, other)}
    if len(scripts) > 1:
        return False
    # In texts in another script, Latin words such as "in" or "de" are code or parts of names.
    if "" in scripts and (decided := _by_function_words(one, other)) is not None:
        return decided
    if min(_shared(one, other), _shared(other, one)) >= SHARED:
        return True
    if min(one.total(), other.total()) >= ENOUGH:
        return False
    logger.warning(
        "%s and %s are too short to tell whether their languages differ: one language is assumed; if there are two, "
        "name them in `languages`, such as fr-en",
        source.name,
        target.name,
    )
    return True


def _by_function_words(*sides: Counter[str]) -> bool | None:
    """Return whether the function words of one language explain both sides; None if they are too few."""
    found = [{name: sum(side[w] for w in words) for name, words in LISTS.items()} for side in sides]
    common = max(LISTS, key=lambda name: sum(of[name] for of in found))
    for of in found:
        most = max(of.values())
        if most - of[common] >= CLEAR and of[common] <= FOREIGN * most:
            return False
    clear = (max(CLEAR, CLEAR_SHARE * side.total()) for side in sides)
    return all(of[common] >= least for of, least in zip(found, clear, strict=True)) or None


def _frequencies(documents: Iterable[Document]) -> Counter[str]:
    texts = (d.full_text[:CHARACTERS].lower() for d in islice(documents, TEXTS))
    return Counter(word for text in texts for word in CHARACTER_OR_WORD.findall(text) if not word.isdigit())


def _shared(words: Counter[str], others: Counter[str]) -> float:
    """Return the share of the occurrences of the most frequent `words` whose word is also frequent in `others`."""
    known = {word for word, _ in others.most_common(KNOWN)}
    frequent = words.most_common(FREQUENT)
    return sum(count for word, count in frequent if word in known) / max(1, sum(c for _, c in frequent))


def analysis_of(source: Side, target: Side) -> str:
    """Return the name of the sides' language for an index: by a code, else by the most frequent words, else "none"."""
    names = {code: name for name, code in CODES.items()}
    for side in (target, source):
        if side.code in names:
            return names[side.code]
    return guess_language(d.full_text for d in target.documents.values()) or "none"


def links_between(
    where: str | Path,
    links: Sequence[tuple[str, str]],
    source: Mapping[str, object],
    target: Mapping[str, object],
) -> list[tuple[str, str]]:
    """Return the known links whose ids are on both sides, without duplicates; the log says how many are left out.

    `where`: their source. Raises InputError if there are none between these texts.
    """
    if not links:
        raise InputError(f"{where}: no pair in it is judged relevant: fill in its verdicts")
    good = [(a, b) for a, b in links if a in source and b in target]
    if not good:
        raise InputError(f"{where}: none of its links is between these texts; do the ids agree?")
    if missing := [(a, b) for a, b in links if a not in source or b not in target]:
        logger.info(
            f"{where}: {len(missing):,} of {len(links):,} links name a text that is not here, so they are left "
            f"out; the first: {' '.join(missing[0])}"
        )
    return list(dict.fromkeys(good))


def judged_between(
    where: str | Path, judged: Mapping[tuple[str, str], bool], documents: Mapping[str, object]
) -> dict[tuple[str, str], bool]:
    """Return the judged pairs between ids of one corpus. Raises InputError if there are none; `where`: the source."""
    if not judged:
        raise InputError(f"{where}: no pair in it is judged: fill in its verdicts")
    pairs = {pair: same for pair, same in judged.items() if pair[0] in documents and pair[1] in documents}
    if not pairs:
        raise InputError(f"{where}: none of its judged pairs is between these documents; do the ids agree?")
    return pairs
