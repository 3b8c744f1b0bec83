"""The embedded BM25 beyond the contract: languages, snapshots, crashes, damage, and the stated quality."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from indexes.interface import DamagedError, DuplicateIdError, IndexesError
from indexes.rows import Rows
from indexes.text.analysis import Analysis
from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import STEMMED, WITHOUT_STOP_WORDS


def numbered(n: int, removed: tuple[int, ...] = ()) -> Rows:
    rows = Rows()
    rows.restore([f"d{i}" for i in range(n)], np.array(removed, dtype=np.int64))
    return rows


def filled(index: Bm25Index, first: int, last: int) -> Bm25Index:
    index.add([f"d{i}" for i in range(first, last)], [f"cat number{i}" for i in range(first, last)])
    return index


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def stored(folder: Path, count: int = 5) -> Path:
    """Store a snapshot of some documents, and return its folder."""
    live = filled(Bm25Index(directory=folder / "live"), 0, count)
    live.commit()
    live.snapshot(folder / "one")
    live.close()
    return folder / "one"


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


def test_snapshots_while_merges_run(tmp_path: Path) -> None:
    live = Bm25Index(directory=tmp_path / "live")
    for i in range(40):  # small segments are merged repeatedly
        filled(live, i, i + 1).commit()
        live.snapshot(tmp_path / str(i))
    live.close()
    for i in range(40):
        assert len(Bm25Index.open(tmp_path / str(i), numbered(i + 1)).search(["cat"], 99)[0]) == i + 1


def test_opening_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    snapshot = stored(tmp_path)
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
    before = contents(stored(tmp_path))
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
    before = contents(stored(tmp_path))
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], cwd=Path(__file__).parents[3], check=False
    )
    assert run.returncode == -signal.SIGKILL
    assert contents(tmp_path / "one") == before
    again = Bm25Index.resume(tmp_path / "one", tmp_path / "again", numbered(5))
    assert filled(again, 5, 6).search(["cat"], 1)[0].ids == ("d0",)
    again.close()


def test_another_number_of_documents_is_damage(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="5 documents, but there are 4 ids"):
        Bm25Index.open(stored(tmp_path), numbered(4))


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


def test_a_batch_that_does_not_fit_is_counted_and_repeated_ids_are_no_present_ones() -> None:
    index = Bm25Index()
    with pytest.raises(IndexesError, match="expected as many texts and metadata records as ids: 1, 2 and 1"):
        index.add(["a"], ["banel"], [{}, {}])
    with pytest.raises(DuplicateIdError, match="already present or given twice: 'a'"):
        index.add(["a", "a"], ["banel", "deras"])


def test_close_ends_the_use(tmp_path: Path) -> None:
    index = filled(Bm25Index(directory=tmp_path / "live"), 0, 5)
    index.commit()
    index.close()
    index.close()
    for use in (lambda: index.search(["cat"], 1), lambda: index.add(["x"], ["y"]), index.commit):
        with pytest.raises(IndexesError, match="closed"):
            use()
