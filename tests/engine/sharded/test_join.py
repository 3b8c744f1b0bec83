"""A directory that stands for several indexes, and the commands, server and reviews that accept it."""

import json
from pathlib import Path

import pytest

from indexes.interface import DamagedError, IndexesError
from indexes.sharded import is_index, join, manifests_of, shards_of
from linker import find
from linker.engine.engine import Engine
from linker.engine.options import SearchOptions
from linker.review.project import Workspace
from linker.server.api.served import Service
from linker.server.config import ServeConfig
from tests.helpers import linker, write_corpus
from tests.server.api.support import client


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    for name in "ab":
        corpus = write_corpus(tmp_path / f"{name}.jsonl", 40, seed=ord(name), prefix=name)
        linker("index", "build", corpus, "--out", tmp_path / f"{name}.index")
    return [tmp_path / "a.index", tmp_path / "b.index"]


def test_commands_search_several_directories(tmp_path: Path, shards: list[Path]) -> None:
    both = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    linker("index", "build", *both, "--out", tmp_path / "one")
    joined = linker("index", "join", tmp_path / "all", *shards)
    assert joined.stdout == f"{tmp_path / 'all'}: 2 directories, 80 documents\n"
    shown = linker("index", "join", tmp_path / "all", *shards, "--json").stdout
    assert json.loads(shown) == {"shards": list(map(str, shards)), "documents": 80}
    text, where = "banel kidom lovik", ["--where", "lang=en"]
    one = linker("search", tmp_path / "one", text, *where, "--json").stdout
    assert one == linker("search", *shards, text, *where, "--json").stdout
    assert one == linker("search", *shards, "--text", text, *where, "--json").stdout
    assert one == linker("search", tmp_path / "all", text, *where, "--json").stdout
    queries = tmp_path / "q.tsv"
    queries.write_text("1\tbanel\n2\tkidom lovik\n", encoding="utf-8")
    run = linker("search", tmp_path / "one", "--queries", queries).stdout
    assert run == linker("search", *shards, "--queries", queries).stdout
    assert "give one text, after the directories" in linker("search", *shards, "a", "b", check=2).stderr
    (tmp_path / "b.index").rename(tmp_path / "away")
    gone = linker("search", tmp_path / "all", text)
    assert "degraded: " in gone.stderr
    assert "b.index unavailable" in gone.stderr
    asked = ("search", tmp_path / "all", "--queries", queries)
    # nobody reads the run's output on screen
    assert "b.index holds no index" in linker(*asked, check=1).stderr
    assert linker(*asked, "--on-failure", "degrade").stdout


def test_find_reads_several_directories(tmp_path: Path, shards: list[Path]) -> None:
    seeds, qrels = tmp_path / "seeds.tsv", tmp_path / "qrels"
    seeds.write_text("s\tbanel kidom lovik\n", encoding="utf-8")
    qrels.write_text("s 0 a3 1\ns 0 b5 1\n", encoding="utf-8")
    found = linker("find", *shards, "--seeds", seeds, "--judgements", qrels, "--until", "2").stdout
    assert "relevant 2" in found
    linker("index", "join", tmp_path / "all", *shards)
    report = find(tmp_path / "all", ["banel kidom lovik"], judgements={"1": {"a3": 1, "b5": 1}}, until=2)
    assert (report.relevant, report.population) == (2, 80)
    assert find(shards, ["banel"], judgements={"1": {"b5": 1}}, until=1).relevant == 1


def test_a_server_and_a_review_take_it_like_an_index(tmp_path: Path, shards: list[Path]) -> None:
    join(tmp_path / "all", shards)
    project = Workspace(tmp_path / "all").single
    assert project is not None
    assert (project.ready, project.ledger.name) == (True, "all.review.sqlite")
    service = Service(ServeConfig.of([tmp_path / "all", shards[0]]))
    try:
        assert set(service.indexes) == {"all", "a.index"}
        served = service.served("all")
        (hits,) = served.search_now(["banel kidom"], SearchOptions(k=80)).hits
        assert {id_[0] for id_ in hits.ids} == {"a", "b"}
        service.reload()
        assert service.served("all") is served
    finally:
        service.close()


def test_programs_search_and_find_in_it_and_cannot_change_it(tmp_path: Path, shards: list[Path]) -> None:
    join(tmp_path / "all", shards)
    with client(tmp_path / "all") as api:
        (listed,) = api.get("/v1/indexes").json()["indexes"]
        assert (listed["name"], listed["documents"]) == ("all", 80)
        assert api.get("/v1/documents/b1").json()["id"] == "b1"
        refused = api.put("/v1/documents/x", json={"text": "y"})
        assert refused.status_code == 400
        assert refused.json()["detail"].startswith(
            "a.index, b.index are open together, which allows reading only"
        )
        shards[1].rename(tmp_path / "away")
        api.get("/v1/indexes")
        answer = api.post("/v1/search", json={"text": "banel kidom"}).json()
        assert answer["degraded"].startswith("b.index unavailable: b.index holds no index")
        assert {hit["id"][0] for hit in answer["results"][0]["hits"]} == {"a"}


def test_the_list_moves_with_its_directories(tmp_path: Path, shards: list[Path]) -> None:
    (tmp_path / "x").mkdir()
    home = tmp_path / "x" / "home"
    home.mkdir()
    for shard in shards:
        shard.rename(home / shard.name)
    join(home / "all", [home / shard.name for shard in shards])
    home.rename(tmp_path / "moved")
    with Engine.open(tmp_path / "moved" / "all") as engine:
        assert len(engine) == 80
    join(tmp_path / "elsewhere" / "all", [tmp_path / "moved" / shard.name for shard in shards])
    assert shards_of(tmp_path / "elsewhere" / "all")[0] == tmp_path / "moved" / "a.index"


def test_mistakes_are_named(tmp_path: Path, shards: list[Path]) -> None:
    with pytest.raises(IndexesError, match="holds an index: name a new directory"):
        join(shards[0], shards)
    with pytest.raises(IndexesError, match="named twice"):
        join(tmp_path / "all", [shards[0], shards[0]])
    with pytest.raises(IndexesError, match="holds no index"):
        join(tmp_path / "all", [shards[0], tmp_path / "none"])
    assert not is_index(tmp_path / "all")
    join(tmp_path / "all", shards)
    assert is_index(tmp_path / "all")
    for command in (["index", "info"], ["index", "verify"], ["index", "compact"], ["index", "delete"]):
        refused = linker(*command, tmp_path / "all", *(["a1"] if "delete" in command else []), check=1)
        assert "stands for several indexes, which its shards.json lists" in refused.stderr
    with pytest.raises(IndexesError, match="stands for several"):
        join(tmp_path / "more", [tmp_path / "all"])
    for content in ("{", "[]", '{"format": 1, "shards": []}', '{"format": 2, "shards": ["a"]}'):
        (tmp_path / "all" / "shards.json").write_text(content, encoding="utf-8")
        with pytest.raises(DamagedError, match=r"shards\.json .*linker index join"):
            Engine.open(tmp_path / "all")
    with pytest.raises(IndexesError, match="holds no index"):
        manifests_of(tmp_path / "none")
