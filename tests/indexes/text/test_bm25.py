"""The embedded BM25 beyond the contract: languages, snapshots, crashes, damage, and the stated quality."""

from __future__ import annotations

import gzip
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from indexes.interface import DamagedError, Filter, IndexesError, RowSearch, TextIndex
from indexes.rows import Rows
from indexes.text.analysis import Analysis
from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import LANGUAGES, STEMMED, WITHOUT_STOP_WORDS, Bm25Parameters

SHARED = Path(os.environ.get("LINKER_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


def numbered(n: int, removed: tuple[int, ...] = ()) -> Rows:
    rows = Rows()
    rows.restore([f"d{i}" for i in range(n)], np.array(removed, dtype=np.int64))
    return rows


def filled(index: Bm25Index, first: int, last: int) -> Bm25Index:
    index.add([f"d{i}" for i in range(first, last)], [f"cat number{i}" for i in range(first, last)])
    return index


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_it_is_a_text_index_and_a_row_search() -> None:
    index = Bm25Index()
    assert isinstance(index, TextIndex)
    assert isinstance(index, RowSearch)
    rows, scores = filled(index, 0, 2).search_rows(["number1", "nothing"], 2)
    assert rows.tolist() == [[1, -1], [-1, -1]]
    assert rows.dtype == np.int64
    assert scores.dtype == np.float32
    assert np.isneginf(scores[rows == -1]).all()


def test_english_is_stemmed_and_stop_words_are_ignored_unless_alone() -> None:
    index = Bm25Index()
    index.add(
        ["who", "be", "run"],
        ["The Who in concert", "To be, or not to be: a question", "The runners were running"],
    )
    assert index.search(["run"], 3)[0].ids == ("run",)
    assert index.search(["The Who"], 1)[0].ids == ("who",)
    assert index.search(["to be or not to be"], 1)[0].ids == ("be",)
    assert index.search(["the question"], 3)[0].ids == ("be",)  # not texts that only share "the"


@pytest.mark.parametrize(("k3", "times"), [(0, 1), (1, 1.5), (2, 9 / 5), (math.inf, 3)])
def test_a_term_repeated_in_a_query_counts_as_k3_says(k3: float, times: float) -> None:
    index = filled(Bm25Index(), 0, 3)
    found = [
        index.search(["number1", "number1 number1 number1"], 1, bm25=Bm25Parameters(k3=k3)),
        filled(Bm25Index(parameters=Bm25Parameters(k3=k3)), 0, 3).search(
            ["number1", "number1 number1 number1"], 1
        ),
    ]
    for once, thrice in found:
        assert thrice.scores[0] == pytest.approx(times * once.scores[0])


def test_k3_grows_with_a_query_beyond_32_terms() -> None:
    index = filled(Bm25Index(), 0, 40)
    others = " ".join(f"number{n}" for n in range(1, 32))
    (short,) = index.search([f"number0 number0 {others}"], 1, bm25=Bm25Parameters(k3=0.5))
    (once,) = index.search(["number0"], 1)
    k3 = 0.5 * 33 / 32
    shared = index.search(["cat"], 1)[0].scores[0]
    assert shared > 0
    assert short.scores[0] == pytest.approx((k3 + 1) * 2 / (k3 + 2) * once.scores[0], rel=1e-5)


def test_parameters_of_a_query_need_no_other_index() -> None:
    texts = ["cat", "cat cat cat dog dog dog dog dog dog", "dog"]
    index, bare = Bm25Index("none"), Bm25Parameters(k1=0, b=0)
    index.add(["a", "b", "c"], texts)
    assert index.search(["cat"], 2)[0].ids == ("a", "b")
    presence = index.search(["cat"], 2, bm25=bare)[0]
    assert presence.scores[0] == presence.scores[1]
    assert index.search(["cat"], 2, bm25=Bm25Parameters(b=0))[0].ids == ("b", "a")
    made = Bm25Index("none", parameters=bare)
    made.add(["a", "b", "c"], texts)
    assert made.search(["cat"], 2)[0].scores.tolist() == presence.scores.tolist()
    for k1 in range(1, 9):  # more than are kept
        index.search(["cat"], 2, bm25=Bm25Parameters(k1=k1))
    assert index.search(["cat"], 2, bm25=bare)[0].scores.tolist() == presence.scores.tolist()


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("german", "Die Häuser der Stadt", "das Haus einer Stadt"),
        ("french", "Les élections présidentielles", "élection"),
        ("russian", "Президент подписал законы", "закон"), ("turkish", "IRMAKLAR ve İSTANBUL", "ırmak istanbul"),
        ("arabic", "الكتب في المكتبة", "كتب"), ("tamil", "தமிழ் நாடு", "தமிழ்"), ("greek", "οι άνθρωποι", "άνθρωπος"),
        ("chinese", "他们在东京大学学习 with IBM2", "东京 ibm2"),
        ("japanese", "東京タワーの高さ", "ﾀﾜｰ"),
        ("korean", "서울시청 앞에서", "서울시청"),
        ("none", "हिन्दी भाषा", "हिन्दी"),
    ],
)  # fmt: skip
def test_languages(language: str, text: str, query: str) -> None:
    index = Bm25Index(language)
    index.add(["other", "text"], ["zzz 1", text])
    assert index.search([query], 5)[0].ids == ("text",)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_answers(language: str) -> None:
    assert Bm25Index(language).search(["a"], 1)[0].ids == ()


def test_the_stop_lists_are_where_they_are_said_to_be() -> None:
    assert set(WITHOUT_STOP_WORDS) < set(STEMMED)
    for language, text in (
        ("english", "the cat"),
        ("german", "die Katze"),
        ("french", "le chat"),
        ("russian", "и кот"),
    ):
        assert len(Analysis(language).query_terms(text)) == 1


def test_chinese_is_cut_into_pairs_and_other_words_stay_whole() -> None:
    assert dict(Analysis("chinese").query_terms("我爱北京 and IBM、水")) == {
        "我爱": 1, "爱北": 1, "北京": 1, "and": 1, "ibm": 1, "水": 1,
    }  # fmt: skip


def test_an_unknown_language_names_the_known_ones() -> None:
    with pytest.raises(IndexesError, match=r"'klingon'.*english.*none"):
        Bm25Index("klingon")


def test_a_snapshot_is_self_contained_and_its_files_keep_names_and_content(tmp_path: Path) -> None:
    live = filled(Bm25Index(directory=tmp_path / "live"), 0, 5)
    live.commit()
    live.snapshot(tmp_path / "one")
    first = contents(tmp_path / "one")
    filled(live, 5, 8).remove(["d1"])
    live.commit()
    live.snapshot(tmp_path / "two")
    second = contents(tmp_path / "two")
    assert contents(tmp_path / "one") == first
    assert all(second[name] == first[name] for name in first.keys() & second.keys())
    live.close()
    for path in (tmp_path / "live").iterdir():
        path.unlink()
    old = Bm25Index.open(tmp_path / "one", numbered(5))
    new = Bm25Index.open(tmp_path / "two", numbered(8, (1,)))
    assert old.search(["cat"], 10)[0].ids == ("d0", "d1", "d2", "d3", "d4")
    assert new.search(["cat"], 10)[0].ids == ("d0", "d2", "d3", "d4", "d5", "d6", "d7")


def test_a_snapshot_holds_the_last_commit_only(tmp_path: Path) -> None:
    live = filled(Bm25Index(directory=tmp_path / "live"), 0, 2)
    live.commit()
    filled(live, 2, 4).snapshot(tmp_path / "one")
    live.close()
    assert len(Bm25Index.open(tmp_path / "one", numbered(2)).search(["cat"], 9)[0]) == 2


def test_an_empty_snapshot(tmp_path: Path) -> None:
    live = Bm25Index(directory=tmp_path / "live")
    live.commit()
    live.snapshot(tmp_path / "one")
    assert Bm25Index.open(tmp_path / "one", Rows()).search(["cat"], 1)[0].ids == ()
    resumed = filled(Bm25Index.resume(tmp_path / "one", tmp_path / "scratch", Rows()), 0, 1)
    assert resumed.search(["cat"], 1)[0].ids == ("d0",)
    resumed.close()


def test_snapshots_while_merges_run(tmp_path: Path) -> None:
    live = Bm25Index(directory=tmp_path / "live")
    for i in range(40):  # small segments are merged repeatedly
        filled(live, i, i + 1).commit()
        live.snapshot(tmp_path / str(i))
    live.close()
    for i in range(40):
        assert len(Bm25Index.open(tmp_path / str(i), numbered(i + 1)).search(["cat"], 99)[0]) == i + 1


def test_opening_writes_nothing_and_outlives_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    live = filled(Bm25Index(directory=tmp_path / "live"), 0, 5)
    live.commit()
    live.snapshot(snapshot := tmp_path / "one")
    live.close()
    before = contents(snapshot)
    snapshot.chmod(0o555)
    index = Bm25Index.open(snapshot, numbered(5))
    snapshot.chmod(0o755)
    assert contents(snapshot) == before
    for path in snapshot.iterdir():
        path.unlink()
    assert len(index.search(["cat"], 9)[0]) == 5
    assert list(temporary.iterdir()) == []
    with pytest.raises(IndexesError, match="reading only"):
        index.add(["x"], ["y"])
    with pytest.raises(IndexesError, match="reading only"):
        index.remove(["d1"])
    assert len(index) == 5


def test_resuming_leaves_the_snapshot_alone(tmp_path: Path) -> None:
    live = filled(Bm25Index(directory=tmp_path / "live"), 0, 5)
    live.commit()
    live.snapshot(tmp_path / "one")
    live.close()
    before = contents(tmp_path / "one")
    resumed = Bm25Index.resume(tmp_path / "one", tmp_path / "scratch", numbered(5))
    resumed.remove(["d0"])
    for i in range(5, 30):
        filled(resumed, i, i + 1).commit()
    assert resumed.search(["cat"], 2)[0].ids == ("d1", "d2")
    resumed.snapshot(tmp_path / "two")
    resumed.close()
    assert contents(tmp_path / "one") == before
    with pytest.raises(IndexesError, match="not empty"):
        Bm25Index.resume(tmp_path / "one", tmp_path / "scratch", numbered(5))


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from indexes.text.bm25 import Bm25Index
from indexes.rows import Rows
folder, rows = Path(sys.argv[1]), Rows()
rows.restore([f"d{i}" for i in range(5)], np.empty(0, dtype=np.int64))
index = Bm25Index.resume(folder / "one", folder / "scratch", rows)
index.remove(["d0"])
index.add(["d5"], ["cat"])
index.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_between_commit_and_snapshot_leaves_the_last_snapshot(tmp_path: Path) -> None:
    live = filled(Bm25Index(directory=tmp_path / "live"), 0, 5)
    live.commit()
    live.snapshot(tmp_path / "one")
    live.close()
    before = contents(tmp_path / "one")
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], cwd=Path(__file__).parents[3], check=False
    )
    assert run.returncode == -signal.SIGKILL
    assert contents(tmp_path / "one") == before
    again = Bm25Index.resume(tmp_path / "one", tmp_path / "again", numbered(5))
    assert filled(again, 5, 6).search(["cat"], 1)[0].ids == ("d0",)
    again.close()


def test_another_number_of_documents_is_damage(tmp_path: Path) -> None:
    live = filled(Bm25Index(directory=tmp_path / "live"), 0, 5)
    live.commit()
    live.snapshot(tmp_path / "one")
    live.close()
    with pytest.raises(DamagedError, match="5 documents, but there are 4 ids"):
        Bm25Index.open(tmp_path / "one", numbered(4))


def test_missing_and_truncated_files_are_damage_that_names_the_folder(tmp_path: Path) -> None:
    live = filled(Bm25Index(directory=tmp_path / "live"), 0, 50)
    live.commit()
    live.remove(["d1"])
    live.commit()
    live.snapshot(snapshot := tmp_path / "one")
    live.close()
    for name, content in contents(snapshot).items():
        for damaged in (None, b"", content[: len(content) // 2]):
            (snapshot / name).unlink()
            if damaged is not None:
                (snapshot / name).write_bytes(damaged)
            try:
                answer = Bm25Index.open(snapshot, numbered(50, (1,))).search(["cat"], 99)[0]
            except DamagedError as error:
                assert str(snapshot) in str(error)  # some files are not needed
            else:
                assert len(answer) == 49
            (snapshot / name).unlink(missing_ok=True)
            (snapshot / name).write_bytes(content)


def test_a_missing_folder_and_memory_have_no_snapshot(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Bm25Index.open(tmp_path / "nowhere", Rows())
    with pytest.raises(IndexesError, match="directory"):
        Bm25Index().snapshot(tmp_path / "one")


def test_close_ends_the_use(tmp_path: Path) -> None:
    index = filled(Bm25Index(directory=tmp_path / "live"), 0, 5)
    index.commit()
    index.close()
    index.close()
    for use in (lambda: index.search(["cat"], 1), lambda: index.add(["x"], ["y"]), index.commit):
        with pytest.raises(IndexesError, match="closed"):
            use()


def test_a_filter_does_not_change_scores() -> None:
    index = Bm25Index()
    texts = [f"cat {'dog ' * (i % 5)} bird{i % 3}" for i in range(200)]
    index.add([f"d{i}" for i in range(200)], texts, [{"even": i % 2 == 0} for i in range(200)])
    free = index.search(["cat dog bird1"], 200)[0]
    some = index.search(["cat dog bird1"], 200, Filter.parse(["even=true"]))[0]
    expected = [(i, s) for i, s in zip(free.ids, free.scores.tolist(), strict=True) if int(i[1:]) % 2 == 0]
    assert list(zip(some.ids, some.scores.tolist(), strict=True)) == expected


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "statements2articles").exists(), reason="the shared data is not here")
def test_quality_on_statements_and_articles() -> None:
    folder = SHARED / "statements2articles"
    with gzip.open(folder / "corpus.jsonl.gz") as file:
        articles = [json.loads(line) for line in file]
    with gzip.open(folder / "queries.jsonl.gz") as file:
        queries = {q["_id"]: q["text"] for q in map(json.loads, file)}
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, article, _ = line.split("\t")
        relevant.setdefault(query, set()).add(article)
    index = Bm25Index()
    index.add([a["_id"] for a in articles], [f"{a['title']}\n{a['text']}" for a in articles])
    answers = index.search([queries[q] for q in relevant], 100)
    ranks = [
        next((r for r, id_ in enumerate(hits.ids, 1) if id_ in wanted), np.inf)
        for hits, wanted in zip(answers, relevant.values(), strict=True)
    ]
    assert np.mean([1 / r for r in ranks]) >= 0.755
    assert np.mean([r == 1 for r in ranks]) >= 0.67
