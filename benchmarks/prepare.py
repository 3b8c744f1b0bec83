"""How fast does `linker bucc prepare` read the dumps of two wikis, and how does its memory grow?

The dumps are written here in the schema of Wikimedia's (benchmarks/support/wikis.py): articles of about 5,000
characters, redirects and pages of other namespaces. Reading a dump means decompressing it, parsing the XML, and
choosing the pages; only those with a link to the other wiki are parsed as wikitext. If gensim is installed, the long,
real articles of the English Wikipedia in its test data are parsed, too."""

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.support.common import cpu_time, in_child
from benchmarks.support.harness import Arguments, Commas, Results, benchmark
from benchmarks.support.wikis import write_langlinks, write_wikis
from linker.papers.bucc.dumps import DumpCounts, Site, read_dump
from linker.papers.bucc.prepare import prepare
from linker.papers.bucc.raw_pages import RawPages, read_langlinks
from linker.papers.bucc.sentences import without_first_sentence
from linker.papers.bucc.wikitext import strip_markup

REAL = "gensim/test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
Files = dict[str, tuple[Path, Path]]


def timed(what: str, run: Callable[[], int], characters: int = 0) -> dict[str, Any]:
    """Return how many items `run` handled per CPU-second; `run` returns their number."""
    count = run()  # a first call loads the libraries
    seconds = cpu_time(run, 3)
    row = {"what": what, "count": count, "per_cpu_s": round(count / seconds)}
    if characters:
        row |= {
            "characters_each": round(characters / count),
            "characters_per_cpu_s": round(characters / seconds),
        }
    print(row, flush=True)
    return row


def read(dump: Path) -> int:
    counts = DumpCounts()
    for _ in read_dump(dump, counts, Site()):
        pass
    return counts.pages


def parsing(dump: Path, name: str) -> list[dict[str, Any]]:
    """Measure parsing the markup and the sentences of a dump's articles."""
    texts = [page.text for page in read_dump(dump, DumpCounts(), Site()) if page.redirect is None]
    plain = [strip_markup(text) for text in texts]

    def strip() -> int:
        return len([strip_markup(text) for text in texts])

    def split() -> int:
        return len([without_first_sentence(text, "en") for text in plain])

    return [
        timed(f"markup of {name}", strip, sum(map(len, texts))),
        timed(f"first sentences of {name}", split, sum(map(len, plain))),
    ]


def whole(files: Files, out: Path) -> None:
    raw = [RawPages((dump,), (links,)) for dump, links in files.values()]
    prepare(raw[0], raw[1], out, ("de", "en"))


@benchmark(work=None, sizes=(Commas((500, 2000)), "linked articles of each wiki"))
def measured(options: Arguments) -> Results:
    folder, sizes = options.work, options.sizes
    wikis: dict[int, Files] = {}
    for size in sizes:
        (folder / str(size)).mkdir()
        wikis[size] = write_wikis(folder / str(size), size)
    dump = wikis[sizes[0]]["en"][0]
    rows = [timed("pages of a dump, read", lambda: read(dump)), *parsing(dump, "articles")]
    links = folder / "links.sql.gz"
    write_langlinks(links, [(n, "en" if n % 10 else "fr", f"L'article {n}") for n in range(300_000)])
    rows.append(timed("rows of langlinks", lambda: sum(1 for _ in read_langlinks(links))))
    spec = importlib.util.find_spec("gensim")
    if spec and spec.origin and (real := Path(spec.origin).parents[1] / REAL).exists():
        rows += parsing(real, "real articles")
    runs = []
    for size, files in wikis.items():
        pages = sum(read(dump) for dump, _ in files.values())
        start = time.perf_counter()
        cost = in_child(whole, (files, folder / f"out{size}"), (wikis[sizes[0]], folder / "warm"))
        runs.append(
            {
                "pages": pages, "parsed": 2 * (size + size // 10), "per_cpu_s": round(pages / cost.cpu_s),
                "peak_mib": cost.peak_mib, "wall_s": round(time.perf_counter() - start, 1),
            }
        )  # fmt: skip
        print(runs[-1], flush=True)
    return {"rows": rows, "runs": runs}
