"""`align`: the passages of linked pages that translate each other, as a translation memory or a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linker.base.errors import InputError
from linker.base.files import check_outputs, read_json
from linker.base.logs import logger
from linker.base.options import takes
from linker.base.progress import listening
from linker.crosslingual.aligned.aligning import PageLink, align_pages, learn_words
from linker.crosslingual.aligned.units import Unit, unit_or_default
from linker.crosslingual.aligned.vectors import ByEncoder, ByWords, Vectoriser
from linker.crosslingual.aligned.writing import PassageWriter
from linker.crosslingual.lexicon.orientation import orient
from linker.crosslingual.options import AlignOptions
from linker.crosslingual.pages.pages import UNKNOWN, Pages, dictionary_of, pages_of, split_languages
from linker.crosslingual.runs import metadata_path
from linker.evaluation.reading.trec import read_run


@dataclass(frozen=True, slots=True)
class Alignment:
    """Counts of an alignment written to `file`: `pages` pairs of linked pages, and `passages` pairs of passages.

    `below` further pairs of passages were left out because of their scores, as were `source_skipped` and
    `target_skipped` passages without a counterpart on the other page. `unit` is the unit of a passage.
    """

    file: Path
    unit: Unit
    pages: int
    passages: int
    below: int
    source_skipped: int
    target_skipped: int


@takes(AlignOptions)
def align(options: AlignOptions) -> Alignment:
    """Align the passages of linked pages and write them to `out`: .tmx (a translation memory) or .tsv (a table).

    `run` holds the links, as `link` writes them; each page's best link counts, if its score is at least
    `min_probability`. Without `languages`, those in RUN.json next to the run are used, or else those of the pages. The
    other options are those of `linker align`. Raises InputError if a file cannot be read or written, no link connects
    these pages, or both an encoder and a dictionary are given.
    """
    o, run, out = options, Path(options.run), Path(options.out)
    if o.encoder and o.dictionary:
        raise InputError("an encoder needs no dictionary: give either `encoder` or `dictionary`")
    check_outputs({"`out`": out}, (run, o.source, o.target, *o.dictionary))
    with listening(o.progress):
        codes = split_languages(o.languages) if o.languages else _languages(run)
        pages = pages_of(o.source, codes[0]), pages_of(o.target, codes[1])
        if out.suffix.lower() == ".tmx" and UNKNOWN in (side.language.code for side in pages):
            logger.warning(
                "%s: a language is unknown, and other programs may refuse the file: name both in `languages`, such "
                "as fr-en",
                out,
            )
        chosen = unit_or_default(o.unit)
        writer = PassageWriter(out, *pages, chosen)
        links = _links(run, *pages, o.min_probability)
        vectoriser = _vectoriser(*pages, o.dictionary, o.encoder)
        if isinstance(vectoriser, ByWords):
            vectoriser = learn_words(vectoriser, links, chosen)
        alignments = align_pages(*pages, links, vectoriser, chosen)
        counts = writer.write(alignments, o.min_score)
    skipped = counts.source_skipped, counts.target_skipped
    return Alignment(out, chosen, counts.pages, counts.passages, counts.below, *skipped)


def _languages(run: Path) -> tuple[str | None, str | None]:
    """Return the language codes in RUN.json; None for each that is missing."""
    beside = metadata_path(run)
    about = read_json(beside) if beside.is_file() else {}
    codes = about.get("languages") if isinstance(about, dict) else None
    if not isinstance(codes, list) or len(codes) != 2:
        return None, None
    source, target = (code if isinstance(code, str) and code != UNKNOWN else None for code in codes)
    return source, target


def _vectoriser(
    source: Pages, target: Pages, dictionary: Sequence[str | Path], encoder: str | None
) -> Vectoriser:
    if encoder is None:
        read = (orient(dictionary_of(path), source, target) for path in dictionary)
        return ByWords(source, target, tuple(pair for one in read for pair in one.pairs))
    from linker.encoders.loading import load_encoder

    return ByEncoder(load_encoder(encoder))


def _links(path: Path, source: Pages, target: Pages, least: float) -> list[PageLink]:
    """Return the best link of each page, if its score is at least `least`, in the order of the run.

    Raises InputError if there is none.
    """
    links, foreign, turned = [], [], False
    for page, ranked in read_run(path).items():
        counterpart, score = _best(ranked)
        if page not in source.position or counterpart not in target.position:
            foreign.append(f"{page} {counterpart}")
            turned |= page in target.position and counterpart in source.position
        elif score >= least:
            links.append(PageLink(source.position[page], target.position[counterpart], score))
    if turned and not links:
        raise InputError(
            f"{path}: its links lead from the second collection to the first: give the collections in the order in "
            "which they were linked"
        )
    if foreign:
        logger.warning(f"{path}: {len(foreign):,} links are not between these pages; the first: {foreign[0]}")
    if not links:
        raise InputError(f"{path}: no link between these pages has a score of at least {least:g}")
    return sorted(links, key=lambda link: link.source)


def _best(ranked: Mapping[str, float]) -> tuple[str, float]:
    return max(ranked.items(), key=lambda entry: entry[1])
