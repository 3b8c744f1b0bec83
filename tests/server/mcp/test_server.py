"""`linker mcp` under the real client's contract: the input, output and errors of its tools."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import TextContent

from linker.engine.engine import Engine
from linker.review.interface import Judgement, Seed
from linker.review.ledger import Ledger
from linker.server.mcp.reviews import Indexes
from linker.server.mcp.server import make_server
from tests.helpers import ROOT, linker
from tests.server.page.support import FLOODS, make_review
from tests.test_missing_extra import WITHOUT

SEEDS = [{"id": "rain", "title": "Floods in Valencia", "text": f"{FLOODS}, and the river rose"}]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    key = make_review(tmp_path, seeds=False)
    return tmp_path / key / "index"


@asynccontextmanager
async def connected(*directories: Path, reviewer: str = "mcp") -> AsyncIterator[Client]:
    """Give a client of the server in this process."""
    indexes = Indexes(directories)
    try:
        async with Client(make_server(indexes, reviewer)) as client:
            yield client
    finally:
        indexes.close()


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


async def review(client: Client) -> None:
    answer = await call(client, "find", seeds=SEEDS)
    assert (await call(client, "find"))["next"] == answer["next"]  # the same until it is judged
    read = 0
    while answer["next"] and not answer["progress"]["enough"]:
        document = answer["next"]["document"]
        verdict = "relevant" if FLOODS in document["text"] else "not"
        stored = await call(
            client,
            "judge",
            id=document["id"],
            seed=answer["next"]["seed"],
            verdict=verdict,
            note="by rule",
        )
        read += 1
        assert stored["progress"]["read"] == read
        answer = await call(client, "find")
    assert answer["progress"]["relevant"] >= 12
    assert answer["progress"]["enough"] or answer["next"] is None


async def test_a_model_searches_and_reviews(index: Path, tmp_path: Path) -> None:
    """One session from the list of tools to the stopping rule, as a client would run it, over pipes."""
    command = ["-W", "error", "-m", "linker", "mcp", str(index)]
    server = StdioServerParameters(command=sys.executable, args=command, env={"PYTHONPATH": str(ROOT)})
    errors = (tmp_path / "stderr").open("w+", encoding="utf-8")
    async with Client(stdio_client(server, errors)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["search", "link", "group", "find", "judge"]
        assert all(t.description and t.input_schema["properties"] and t.output_schema for t in tools.values())
        assert tools["judge"].input_schema["required"] == ["id", "verdict"]
        assert tools["search"].annotations and tools["search"].annotations.read_only_hint
        found = await call(client, "search", query="flooded streets of Valencia", k=3, characters=10)
        oracle = Engine.open(index).search("flooded streets of Valencia", 3).hits[0]
        assert [hit["document"]["id"] for hit in found["hits"]] == list(oracle.ids)
        assert found["hits"][0]["document"]["text"] == FLOODS[:10]
        assert found["hits"][0]["document"]["left_out"] > 0
        filtered = await call(client, "search", query="parliament", where=["day>=10"])
        assert {hit["document"]["id"] for hit in filtered["hits"]} == {"v10", "v11"}
        texts = [{"id": "p", "text": "flooded streets of Valencia"}, {"id": "q", "text": "zxq wvk"}]
        linked = {one["id"]: one for one in (await call(client, "link", texts=texts))["texts"]}
        assert FLOODS[:20] in linked["p"]["hits"][0]["document"]["text"]
        assert linked["p"]["no_match"] < linked["q"]["no_match"]
        await review(client)
    with errors:
        errors.seek(0)
        assert errors.read().count(": 2 texts") == 1
    with Ledger(index.with_name("index.review.sqlite")) as ledger:
        judgements = ledger.judgements()
        assert {j.reviewer for j in judgements} == {"mcp"}
        assert all(j.seed == "rain" and j.note == "by rule" and j.phase == "queue" for j in judgements)


async def test_it_follows_the_page_and_keeps_reviews_apart(index: Path) -> None:
    async with connected(index, reviewer="robot") as client:
        first = (await call(client, "find", seeds=SEEDS))["next"]["document"]["id"]
        with Ledger(index.with_name("index.review.sqlite")) as ledger:  # a person judges it on the page
            ledger.add(Judgement("rain", first, "relevant", "ana"))
        answer = await call(client, "find")
        assert answer["next"]["document"]["id"] != first
        assert answer["progress"]["read"] == 1
        votes = await call(client, "find", seeds=[{"text": "parliament debates"}], review="votes")
        assert votes["progress"]["read"] == 0
        assert votes["next"]["seed"].startswith("seed-")
        beside = await call(client, "judge", id="copy", verdict="relevant", review="votes")
        assert (beside["seed"], beside["reviewer"]) == (votes["next"]["seed"], "robot")
    with Ledger(index.with_name("index.votes.review.sqlite")) as ledger:
        (judgement,) = ledger.judgements()
        assert (judgement.id, judgement.phase) == ("copy", "search")


async def test_mistakes_say_what_to_do(index: Path) -> None:
    async with connected(index) as client:
        assert "no seeds yet" in await refusal(client, "find")
        assert "call find with seeds" in await refusal(client, "judge", id="f1", verdict="not")
        await call(client, "find", seeds=SEEDS)
        assert "different seeds (rain)" in await refusal(client, "find", seeds=[{"id": "x", "text": "votes"}])
        assert "no seed 'x'" in await refusal(client, "judge", id="f1", seed="x", verdict="not")
        assert "no document 'f99' in the index" in await refusal(client, "judge", id="f99", verdict="not")
        assert "verdict" in await refusal(client, "judge", id="f1", verdict="perhaps")
        assert "no index 'news'" in await refusal(client, "search", query="rain", index="news")
        assert "lower-case Latin letters" in await refusal(client, "find", review="../x")
        assert "dya" in (said := await refusal(client, "search", query="rain", where=["dya>3"]))
        assert "day" in said.replace("dya", "")
        assert "encoder" in await refusal(client, "search", query="rain", mode="dense")
        # Such a text would come back without hits, as if nothing belonged to it.
        assert "no text" in await refusal(client, "link", texts=[{"id": "a", "text": "rain"}, {"text": " "}])


async def test_documents_about_one_story_are_grouped(index: Path) -> None:
    async with connected(index) as client:
        found = await call(client, "group", most=1)
        oracle = Engine.open(index).group()
        assert found["documents"] == len(oracle.members) and found["count"] == len(oracle) > 0
        (largest,) = found["groups"]
        assert len(largest["ids"]) == max(len(group.ids) for group in oracle.groups)
        assert largest["representative"] in largest["ids"] and largest["near_copies"].keys() <= set(
            largest["ids"]
        )
        assert "dates" in await refusal(client, "group", days=3)


async def test_several_indexes_are_told_apart(index: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    key = make_review(other, "Votes", seeds=False)

    async with connected(index, other / key) as client:
        assert "index, votes" in await refusal(client, "search", query="rain")
        assert (await call(client, "search", query="rain", index="votes"))["index"] == "votes"
        await call(client, "find", index="votes", seeds=SEEDS)
    # in a review's folder, the ledger that its page shows
    with Ledger(other / key / "review.sqlite") as ledger:
        assert ledger.seeds == (Seed("rain", SEEDS[0]["text"], SEEDS[0]["title"]),)


def test_what_the_command_line_is_given_is_checked(tmp_path: Path, index: Path) -> None:
    assert "holds no index" in linker("mcp", tmp_path / "none", check=1).stderr
    assert not (tmp_path / "none").exists()
    assert "two folders are named index" in linker("mcp", index, index, check=1).stderr
    for address in ("elastic+https://ana:geheim@localhost:9/news", "https://ana:geheim@localhost/news"):
        printed = linker("mcp", address, check=1).stderr
        assert "localhost" in printed
        assert "geheim" not in printed


def test_a_line_that_is_not_a_message_is_answered(index: Path) -> None:
    """Without a response a client would wait forever; the request's id is returned if it can be read."""
    ask = '{"jsonrpc": "2.0", "id": %s, "method": "tools/list", "params": {"a": "%s"}}'
    lines = [
        "{broken", ask % (7, r"\ud800"), ask % (r'"\udfff"', r"\udfff"), "[]", '{"id": 3}', " ", "[" * 5000,
    ]  # fmt: skip
    command = [sys.executable, "-W", "error", "-m", "linker", "mcp", str(index)]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=60)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [
        (None, -32700), (7, -32700), (None, -32700), (None, -32600), (3, -32600), (None, -32700),
    ]  # fmt: skip
    assert "Traceback" not in done.stderr


def test_what_is_not_installed_is_named_or_not_needed(index: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "mcp mcp_types", f"mcp {index}"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["1"]
    assert "[mcp]'" in done.stderr
    code = "import sys; sys.modules['fastapi'] = None; import linker.server.mcp.server"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
