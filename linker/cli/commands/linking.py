"""`link`: which documents of one collection belong to the texts of another, in one language or two."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.files import check_outputs
from linker.base.logs import logger
from linker.base.options import takes
from linker.base.progress import listening
from linker.cli.commands.arguments import known_links, paths
from linker.crosslingual.lexicon.queries import is_source, store
from linker.crosslingual.linking import LinkOutcome, Links, link_sides, sides_of
from linker.crosslingual.options import LEARN, TABLES, LinkOptions
from linker.crosslingual.pages.pages import UNKNOWN, dictionary_of
from linker.crosslingual.ranking.model import check_writable, save
from linker.crosslingual.sides import Side, is_index
from linker.engine.evidence import Span
from linker.review.exporting.rows import ExportRow
from linker.review.exporting.writing import PAIRS, write_pairs
from linker.review.interface import Judgement, Seed

SURE = 0.9  # minimum P(link) of the links from which a lexicon learns in addition to the known ones
UNJUDGED: Any = ""


@takes(LinkOptions)
def link(options: LinkOptions) -> Links:
    """Link the texts of `source` to their counterparts in `target`: files, folders or indexes.

    The options are those of `linker link`. With `out`, the run is written there in six columns, with RUN.json next to
    it; across languages it can be resumed; .csv, .xlsx and .jsonl also hold both texts. `train`: files of known
    links. `save_model` saves the learned model in a folder, which `model` reuses; in an index that is one of the two
    sides, it saves a lexicon, with which the index can be searched in the other side's language. `uncertain`: a file
    for the links whose probability is `between` two bounds, with both texts, for people to judge. `columns` says how
    to read tables. Raises InputError if a file cannot be read, or the method lacks an input that it needs.
    """
    o, path = options, None if options.out is None else Path(options.out)
    table = path is not None and path.suffix.lower() in TABLES
    _check(o, table)
    with listening(o.progress):
        first, second = sides_of(o)
        into = Path(o.save_model) if o.save_model and is_index(Path(o.save_model)) else None
        into_source = into is not None and is_source(into, first, second)
        pairs = known_links(paths(o.train), first.documents, second.documents)
        outcome = link_sides(first, second, pairs, o, None if table else path)
        if into:
            words = [pair for path in o.dictionary for pair in dictionary_of(path).pairs]
            sure = [(a, b) for a, b, p in outcome.proposed if p >= SURE]
            store(into_source, first, second, [*pairs, *sure], words)
        elif o.save_model and outcome.model:
            save(outcome.model(), Path(o.save_model))
        if o.uncertain:
            write_doubts(Path(o.uncertain), outcome, first, second, o.between)
    if table and path:
        write_linked(path, outcome.links, first, second, probable=o.method in LEARN)
    return outcome.links


def _check(options: LinkOptions, table: bool) -> None:
    """Raise InputError for options that contradict each other or cannot be written, before anything is read."""
    files = (options.source, options.target, *options.dictionary, *paths(options.train), options.pivot)
    check_outputs({"`out`": options.out, "`uncertain`": options.uncertain}, (*files, options.pivot_links))
    if table and (options.resume or options.explain):
        raise InputError(
            f"`resume` and `explain` write files next to a run: name one, not {options.out}, with `out`"
        )
    for name in ("save_model", "uncertain"):
        if getattr(options, name) is not None and options.method not in LEARN:
            raise InputError(
                f"`{name}` is for the methods that learn, auto and cascade, not {options.method!r}: leave it out"
            )
    if options.save_model is not None and not is_index(Path(options.save_model)):
        check_writable(Path(options.save_model))
    if options.uncertain is not None:
        check_doubts(Path(options.uncertain), options.between)


def check_doubts(path: Path, between: tuple[float, float]) -> None:
    """Raise InputError if the bounds or the file's name are invalid, before anything is linked."""
    if not 0 <= between[0] <= between[1] <= 1:
        raise InputError(f"`between` must be two ascending probabilities, such as .1 and .9, not {between}")
    if path.suffix.lower() not in PAIRS:
        raise InputError(f"cannot tell the format of {path}: its name must end in {', '.join(PAIRS)}")


def write_doubts(
    path: Path, outcome: LinkOutcome, source: Side, target: Side, between: tuple[float, float]
) -> int:
    """Write the links whose probability is `between` two bounds, the least certain first; return how many there are.

    Each record is a pair as `linker review export` writes it, with its passage and an empty verdict. Raises InputError
    if the file cannot be written.
    """
    doubts = [link for link in outcome.proposed if between[0] <= link[2] <= between[1]]
    doubts.sort(key=lambda link: (abs(link[2] - 0.5), link[0]))
    passages = outcome.links.passages
    write_pairs([_doubt(link, source, target, passages.get(link[0])) for link in doubts], path)
    logger.info("%s: %s links with a probability from %g to %g to judge", path, f"{len(doubts):,}", *between)
    return len(doubts)


def write_linked(path: Path, links: Links, source: Side, target: Side, *, probable: bool) -> None:
    """Write all links as a table, in the columns of `write_doubts` and with the rank of each target.

    `probable`: whether the scores are probabilities. Further columns, if known: P(none) of the text (`seed_none`),
    near-duplicates of the target among the text's other targets (`copies`), and the passage of the first target that
    the text is about. Raises InputError if the file cannot be written.
    """
    write_pairs(list(_linked_rows(links, source, target, probable)), path)


def _linked_rows(links: Links, source: Side, target: Side, probable: bool) -> Iterator[ExportRow]:
    for one, of in links.run.items():
        none = {"none": round(links.none[one], 6)} if one in links.none else {}
        for rank, (other, score) in enumerate(of.items(), start=1):
            details: dict[str, Any] = {"rank": rank}
            if rank == 1 and one in links.copies:
                details["copies"] = " ".join(links.copies[one])
            passage = links.passages.get(one) if rank == 1 else None
            p = round(score, 6) if probable else None
            yield _row(source, one, target, other, (score if p is None else p, p), none, details, passage)


def _doubt(link: tuple[str, str, float], source: Side, target: Side, passage: Span | None) -> ExportRow:
    p = round(link[2], 6)
    return _row(source, link[0], target, link[1], (p, p), {}, {}, passage)


def _row(
    source: Side,
    one: str,
    target: Side,
    other: str,
    figures: tuple[float, float | None],
    of_source: Mapping[str, Any],
    of_target: Mapping[str, Any],
    passage: Span | None,
) -> ExportRow:
    """Return a pair with its score and probability (`figures`), and further metadata of the text and the target."""
    first, second = source.documents[one], target.documents[other]
    # Codes are shown only if they differ and are known.
    across = source.code != target.code and UNKNOWN not in (source.code, target.code)
    codes = [{"language": side.code} if across else {} for side in (source, target)]
    metadata = {**codes[0], **of_source, **first.metadata}
    seed = Seed(one, first.full_text, metadata=metadata)
    document = Document(other, second.full_text, "", {**codes[1], **of_target, **second.metadata})
    return ExportRow(
        Judgement(one, other, UNJUDGED, score=figures[0], probability=figures[1]), seed, document, passage
    )
