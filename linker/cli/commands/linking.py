"""`link`: which documents of one collection belong to the texts of another, in one language or two."""

from __future__ import annotations

from pathlib import Path

from linker.base.errors import InputError
from linker.base.files import check_outputs
from linker.base.options import takes
from linker.base.progress import listening
from linker.cli.commands.doubting import check_doubts, write_doubts, write_linked
from linker.cli.commands.given import paths
from linker.cli.commands.judged import known_links
from linker.crosslingual.lexicon.queries import is_source, store
from linker.crosslingual.linking import Links, link_sides, sides_of
from linker.crosslingual.options import LEARN, LinkOptions
from linker.crosslingual.pages.pages import dictionary_of
from linker.crosslingual.ranking.saved import check_writable, save
from linker.crosslingual.sides import is_index
from linker.review.exporting.writing import PAIRS

SURE = 0.9  # minimum P(link) for a lexicon to learn from a link, in addition to known links


@takes(LinkOptions)
def link(options: LinkOptions) -> Links:
    """Link the texts of `source` to their counterparts in `target`: files, folders or indexes.

    The options are those of `linker link`. With `out`, the run is written there in six columns, with RUN.json next to
    it; across languages it can be resumed; .csv, .xlsx and .jsonl also hold both texts. `train`: files of known
    links. `save_model` saves the learned model in a folder, which `model` reuses; in an index that is one of the two
    sides, it saves a lexicon, with which the index can be searched in the other side's language. `uncertain`: a file
    for the links whose probability is `between` two bounds, with both texts, for people to judge. `columns` says how
    tables are to be read. Raises InputError if a file cannot be read, or the method lacks an input that it needs.
    """
    o, path = options, None if options.out is None else Path(options.out)
    table = path is not None and path.suffix.lower() in PAIRS
    _check(o, table)
    with listening(o.progress):
        first, second = sides_of(o)
        into = Path(o.save_model) if o.save_model and is_index(Path(o.save_model)) else None
        into_source = into is not None and is_source(into, first, second)
        pairs = known_links(paths(o.train), first.documents, second.documents)
        done = link_sides(first, second, pairs, o, None if table else path)
        if into:
            words = [pair for path in o.dictionary for pair in dictionary_of(path).pairs]
            sure = [(a, b) for a, b, p in done.proposed if p >= SURE]
            store(into_source, first, second, [*pairs, *sure], words)
        elif o.save_model and done.model:
            save(done.model(), Path(o.save_model))
        if o.uncertain:
            write_doubts(Path(o.uncertain), done, first, second, o.between)
    if table and path:
        write_linked(path, done.links, first, second, probable=o.method in LEARN)
    return done.links


def _check(options: LinkOptions, table: bool) -> None:
    """Raise InputError for options that contradict each other or cannot be written, before anything is read."""
    files = (options.source, options.target, *options.dictionary, *paths(options.train), options.pivot)
    check_outputs({"`out`": options.out, "`uncertain`": options.uncertain}, (*files, options.pivot_links))
    if options.one_to_one and options.links not in (None, "one-to-one"):
        raise InputError(f"`one_to_one` contradicts `links` {options.links}: leave one of them out")
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
