"""The commands' output on fixed inputs: `python -m tests.golden.make_commands [FILE...]` writes `commands/`.

A change that only moves code must leave these bytes unchanged. An existing file is kept unless it is named, as in a
commit that intentionally changes a command's output.
"""

import contextlib
import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.crosslingual.synthetic import twin
from tests.golden.make_index import queries
from tests.helpers import linker, sentence, write_corpus

HERE = Path(__file__).parent
FOLDER = HERE / "commands"
TREC = HERE / "trec_eval"


def outputs(work: Path) -> dict[str, str]:
    """Run the commands in `work`; return each one's output by file name."""
    with contextlib.chdir(work):
        return {**_searches(), **_links(), **_links_in_one_language(), **_evaluations()}


def _searches() -> dict[str, str]:
    corpus, index = write_corpus(Path("corpus.jsonl"), 200), Path("index")
    Path("queries.tsv").write_text("".join(f"q{n}\t{q}\n" for n, q in enumerate(queries())), encoding="utf-8")
    linker("index", "build", corpus, "--out", index)
    linker("index", "delete", index, "d3", "d77")
    asked = ("search", index, "--queries", "queries.tsv", "--out")
    linker(*asked, "all.run")
    linker(*asked, "some.run", "--where", "lang=de", "-k", "3")
    return {
        **{name: Path(name).read_text(encoding="utf-8") for name in ("all.run", "some.run")},
        "text.json": linker("search", index, "--text", queries()[0], "--json").stdout,
    }


def _links() -> dict[str, str]:
    """Link synthetic pages by every method without an encoder. Linked pages share a name; the pivot is the source."""
    pages = twin(pages=60, extra=10, vocabulary=300)
    partner = {t: s for s, t in pages.gold().items()}
    for name, side in (("source", pages.source), ("target", pages.target)):
        lines = (
            json.dumps({"id": i, "text": f"{text} Sankt-{partner.get(i, i)}"}) + "\n"
            for i, text in zip(side.ids, side.texts, strict=True)
        )
        Path(f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    Path("words.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pages.dictionary), encoding="utf-8")
    gold = [f"{s} 0 {t} 1\n" for s, t in pages.gold().items()]
    chosen = np.random.default_rng(0).permutation(len(gold))
    Path("train.txt").write_text("".join(gold[n] for n in chosen[:40]), encoding="utf-8")
    Path("pivot.txt").write_text("".join(gold[n] for n in chosen[:50]), encoding="utf-8")
    words, links = ["--dictionary", "words.tsv"], ["--train", "train.txt", "-k", "1"]
    given = {
        "hapax": ["-k", "2"],
        "dictionary": [*words, "-k", "2"],
        "pivot": ["--pivot", "source.jsonl", "--pivot-links", "pivot.txt", "-k", "2"],
        "cascade": [*words, *links],
        "auto": [*words, *links],
        "nothing": ["-k", "1"],
    }
    written = {}
    for method, options in given.items():
        out = Path(f"{method}.links")
        linker("link", "source.jsonl", "target.jsonl", "--languages", "und-und", *options,
               "--method", "auto" if method == "nothing" else method, "--out", out)  # fmt: skip
        written[out.name] = out.read_text(encoding="utf-8")
    return written


def _links_in_one_language() -> dict[str, str]:
    """Link texts to documents in which two of five words differ; half of the links are known."""
    rng = np.random.default_rng(1)
    texts = [sentence(random.Random(number), 25).split() for number in range(120)]
    for name, kept in (("posts", 1.0), ("articles", 0.6)):
        lines = []
        for number, words in enumerate(texts):
            other = texts[rng.integers(len(texts))]
            mixed = [w if rng.random() < kept else o for w, o in zip(words, other, strict=True)]
            lines.append(json.dumps({"id": f"{name[0]}{number}", "text": " ".join(mixed)}) + "\n")
        Path(f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    known = "".join(f"p{n} 0 a{n} 1\n" for n in range(60))
    Path("known.txt").write_text(known, encoding="utf-8")
    linker("link", "posts.jsonl", "articles.jsonl", "--languages", "en-en", "--train", "known.txt", "-k", "2",
           "--out", "within.links")  # fmt: skip
    return {"within.links": Path("within.links").read_text(encoding="utf-8")}


def _evaluations() -> dict[str, str]:
    qrels, run = TREC / "qrels.txt", TREC / "run.txt"
    measures = [
        part for m in ("MRR", "map", "Rprec", "ndcg", "auc", "success.1,5", "P.5,10") for part in ("-m", m)
    ]
    return {
        "evaluate.txt": linker("evaluate", qrels, run, "-q", *measures).stdout,
        "evaluate.json": linker("evaluate", qrels, run, "--json", *measures).stdout,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as work:
        made = outputs(Path(work))
    if unknown := set(sys.argv[1:]) - made.keys():
        sys.exit(f"No command writes {', '.join(sorted(unknown))}: name one of {', '.join(made)}.")
    FOLDER.mkdir(exist_ok=True)
    for name, text in made.items():
        if name in sys.argv[1:] or not (FOLDER / name).exists():
            (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
