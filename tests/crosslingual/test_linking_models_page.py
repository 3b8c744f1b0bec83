"""Every command in docs/linking-models.md works, one after the other."""

import json
from pathlib import Path

import linker
from linker.crosslingual.pages.pages import Pages
from tests.crosslingual.synthetic import twin
from tests.helpers import run_page

OLD = 40


def write(path: Path, pages: Pages, rows: range) -> None:
    records = [{"_id": pages.ids[row], "text": pages.texts[row]} for row in rows]
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    corpus = twin(pages=60)
    gold = list(corpus.gold().items())
    write(tmp_path / "old.fr.jsonl", corpus.source, range(OLD))
    write(tmp_path / "new.fr.jsonl", corpus.source, range(OLD, 60))
    write(tmp_path / "fr.jsonl", corpus.source, range(OLD))
    write(tmp_path / "en.jsonl", corpus.target, range(len(corpus.target)))
    (tmp_path / "fr-en.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in corpus.dictionary[::3]))
    (tmp_path / "old.qrels").write_text("".join(f"{s} 0 {t} 1\n" for s, t in gold[:25]))
    (tmp_path / "links.qrels").write_text((tmp_path / "old.qrels").read_text())
    linker.build([tmp_path / "en.jsonl"], tmp_path / "en.index", linker.BuildOptions())
    for code, first in (("de", 25), ("fr", 30)):
        run, known = tmp_path / f"{code}-en.run", tmp_path / f"{code}.qrels"
        run.write_text("".join(f"{code}{s} Q0 {t} 1 .8 x\n" for s, t in gold[first:]))
        known.write_text("".join(f"{code}{s} 0 {t} 1\n" for s, t in gold[:first]))
        Path(f"{run}.json").write_text(json.dumps({"languages": [code, "en"]}))
    printed = run_page("linking-models.md", tmp_path, blocks=5)
    assert set(json.loads(printed.splitlines()[-1])["pages"]) == {"de", "en", "fr"}
    new = {line.split()[0] for line in (tmp_path / "new.run").read_text().splitlines()}
    assert new == {s for s, _ in gold[OLD:]}
    assert (tmp_path / "doubts.csv").read_text(encoding="utf-8-sig").startswith("seed,id,verdict")
