"""Jobs over HTTP: their results against the library's, progress, cancelling, limits, and who sees them."""

import errno
import json
import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.review.interface import Seed
from linker.review.orders import MergedOrder
from linker.review.population import Population
from linker.review.settings import Settings
from linker.server.config import Limits
from linker.server.errors import ProblemError
from linker.server.guard.tokens import Principal
from linker.server.jobs.keeper import Jobs, Standing
from tests.server.api.support import check_problem, client, ended

SEEDS = [{"id": "s1", "text": "rain over valencia"}, {"id": "s2", "text": "parliament"}]
ANA, BEN = Principal("ana", frozenset({"read"})), Principal("ben", frozenset({"read"}))
WORDS = [f"word{i} other{i * 7 % 97}" for i in range(300)]
LINK = {
    "source": {"language": "fr", "documents": [{"id": f"f{i}", "text": f"nom{i} rare{i}"} for i in range(5)]},
    "target": {
        "language": "en",
        "documents": [{"id": f"e{i}", "text": f"name rare{i} other"} for i in range(5)],
    },
    "method": "hapax",
}


def test_find_lists_what_the_order_hands_out(api: TestClient, folder: Path) -> None:
    body = {
        "seeds": SEEDS,
        "unit": "pairs",
        "order": "rank",
        "judgements": [{"seed": "s1", "id": "a", "verdict": "not"}],
    }
    answer = api.post("/v1/find", json=body)
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"
    job = ended(api, answer.json())
    assert (job["state"], job["error"]) == ("done", "")
    seeds = [Seed(s["id"], s["text"]) for s in SEEDS]
    settings = Settings("pairs", "rank")
    with Engine(folder / "news") as engine:
        order = MergedOrder(engine, seeds, settings, Population(engine.collection.rows, seeds, settings))
        oracle = list(iter(order.next, None))
    expected = [(c.seed, c.id) for c in oracle if (c.seed, c.id) != ("s1", "a")]
    assert [(c["seed"], c["id"]) for c in job["result"]["candidates"]] == expected
    assert len(expected) > 2
    assert (job["result"]["read"], job["result"]["population"]) == (1, 8)
    assert [j["id"] for j in api.get("/v1/jobs").json()["jobs"]] == [job["id"]]
    assert "result" not in api.delete(f"/v1/jobs/{job['id']}").json()
    check_problem(api.get(f"/v1/jobs/{job['id']}"), 404, "unknown-job")


def test_link_links_texts_and_documents_of_an_index(api: TestClient) -> None:
    job = ended(api, api.post("/v1/link", json=LINK | {"k": 1}).json())
    assert job["state"] == "done", job
    assert {x["source"]: x["targets"][0]["id"] for x in job["result"]["links"]} == {
        f"f{i}": f"e{i}" for i in range(5)
    }
    side = {"language": "en", "where": ["lang=de"]}
    sent = {"language": "fr", "documents": [{"id": "f", "text": "volcano en iceland"}]}
    job = ended(api, api.post("/v1/link", json={"source": sent, "target": side, "method": "hapax"}).json())
    assert job["result"]["texts"] == [1, 2]
    assert job["result"]["links"][0]["targets"][0]["id"] == "c"


def test_link_decides_together_in_one_language(api: TestClient) -> None:
    """No method or language is given, and each text has its P(none)."""
    words = ["volcano in iceland", "trains on strike", "floods in valencia"]
    sides = {
        side: {"documents": [{"id": f"{side}{n}", "text": f"{text} {side}"} for n, text in enumerate(words)]}
        for side in ("source", "target")
    }
    result = ended(api, api.post("/v1/link", json=sides).json())["result"]
    assert {x["source"]: x["targets"][0]["id"] for x in result["links"]} == {
        f"source{n}": f"target{n}" for n in range(3)
    }
    assert all(0 <= result["no_match"][f"source{n}"] <= 1 for n in range(3))
    one_language = {**sides, "source": {**sides["source"], "language": "en"}}
    assert "of both collections" in api.post("/v1/link", json=one_language).text


@pytest.mark.parametrize(
    ("unusable", "why"),
    [({"text": " "}, "text and title are empty"), ({"text": "x\0"}, "NUL"), ({"id": "a b"}, "white space")],
)
def test_a_text_that_a_job_would_leave_out_is_refused(
    api: TestClient, unusable: dict[str, str], why: str
) -> None:
    one, other = {"id": "x", "text": "volcano"}, {"id": "y", "text": "volcano"}
    sides = {"source": {"documents": [one, {**other, **unusable}]}, "target": {"documents": [one]}}
    answer = api.post("/v1/link", json=sides)
    check_problem(answer, 422, "invalid-request")
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "#/source/documents/1" and why in error["detail"]


def test_group_puts_texts_and_documents_of_an_index_together(api: TestClient) -> None:
    words = ["volcano erupts in iceland", "iceland volcano erupts again", "trains on strike in paris"]
    sent: dict[str, list[dict[str, Any]]] = {
        "documents": [{"id": f"d{n}", "text": text} for n, text in enumerate([*words, words[0]])]
    }
    pairs = {"same": [["d0", "d1"]], "different": [["d0", "d2"]], "precision": 0.9}
    job = ended(api, api.post("/v1/group", json={"corpus": sent, **pairs}).json())
    assert job["state"] == "done" and job["result"]["promise"] is None, job
    members = {member["id"]: member for member in job["result"]["members"]}
    assert list(members) == ["d0", "d1", "d2", "d3"] and members["d3"]["near_copy_of"] == "d0"
    assert {"d0", "d3"} <= {id_ for group in job["result"]["groups"] for id_ in group["ids"]}
    assert len(ended(api, api.post("/v1/group", json={"corpus": {}}).json())["result"]["members"]) == 4
    job = ended(api, api.post("/v1/group", json={"corpus": sent, "days": 3}).json())
    assert job["state"] == "failed" and "needs dates" in job["error"]
    for number, document in enumerate(sent["documents"]):
        document["metadata"] = {"date": f"2024-01-{1 + 5 * number:02}"}
    members = ended(api, api.post("/v1/group", json={"corpus": sent, "days": 3}).json())["result"]["members"]
    assert len({member["group"] for member in members}) == 4 and members[1]["date"] == "2024-01-06"


def test_mistakes_are_told_at_once_or_by_the_job(api: TestClient, folder: Path) -> None:
    check_problem(api.post("/v1/find", json={"seeds": SEEDS, "where": ["lnag=en"]}), 400, "bad-filter")
    per_pair = {"seeds": SEEDS, "unit": "pairs", "order": "feedback"}
    assert "one topic" in check_problem(api.post("/v1/find", json=per_pair), 400, "bad-input")
    assert api.post("/v1/find", json={"seeds": []}).status_code == 422
    assert api.post("/v1/link", json=LINK | {"source": {"language": "../x"}}).status_code == 422
    check_problem(api.get("/v1/jobs/..%2F..%2Fetc"), 404, "not-found")
    check_problem(api.get("/v1/jobs/a.b"), 404, "unknown-job")
    unknown = {"seeds": [{"id": "s", "text": "x", "document": "gone"}], "unit": "pairs", "order": "rank"}
    job = ended(api, api.post("/v1/find", json=unknown).json())
    assert job["state"] == "failed"
    assert "gone" in job["error"]
    assert str(folder) not in job["error"]


def hold(jobs: Jobs, owner: Principal, folder: Path, id_: str = "") -> Standing:
    """Start a job that waits forever: it reads a pipe that nobody writes to."""
    pipe = folder / f"pipe{len(list(folder.iterdir()))}"
    pipe.mkdir()
    os.mkfifo(pipe / "manifest.json")
    spec = {"index": str(pipe), "seeds": [], "settings": {}, "judgements": [], "limit": 1}
    return jobs.submit("find", spec, owner, id_=id_)


def state(jobs: Jobs, id_: str) -> str:
    return jobs.get(id_, ANA).state


def until(jobs: Jobs, id_: str, wanted: str) -> None:
    end = time.monotonic() + 60
    while state(jobs, id_) != wanted:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_bounded_queue_whose_jobs_end_when_they_are_told_to(tmp_path: Path) -> None:
    """Two workers share a folder: each sees and ends the jobs of the other."""
    shared, work = tmp_path / "shared", tmp_path / "work"
    shared.mkdir()
    work.mkdir()
    limits = Limits(jobs=1, jobs_waiting=1)
    one, two = Jobs(limits, shared), Jobs(limits, shared)
    first, second = hold(one, ANA, work), hold(one, ANA, work)
    with pytest.raises(ProblemError, match="too many jobs"):
        hold(one, ANA, work)
    until(two, first.id, "running")
    assert state(two, second.id) == "waiting"
    with pytest.raises(ProblemError, match="no such job"):
        two.get(first.id, BEN)
    assert two.list(BEN) == []
    assert one.forget(second.id, ANA).state == "cancelled"  # before it started
    assert two.forget(first.id, ANA).state == "cancelled"  # by another worker
    assert not list(shared.glob("*.state"))
    assert not list(shared.glob("*.cancel"))
    third = hold(one, ANA, work)
    until(two, third.id, "running")
    one.close()
    assert state(two, third.id) == "cancelled"
    two.close()


def test_one_job_of_an_id_at_a_time_is_remembered_until_it_is_forgotten(tmp_path: Path) -> None:
    """The page identifies a job by its review and its task."""
    with closing(Jobs(Limits())) as jobs:
        hold(jobs, ANA, tmp_path, "find-floods")
        with pytest.raises(InputError, match="already running"):
            hold(jobs, ANA, tmp_path, "find-floods")
        assert jobs.cancel("find-floods", ANA).state == "cancelled"
        assert [job.state for job in jobs.list(ANA)] == ["cancelled"]
        hold(jobs, ANA, tmp_path, "find-floods")
        assert [job.has_ended for job in jobs.list(ANA)] == [False]
        jobs.forget("find-floods", ANA)
        assert jobs.list(ANA) == []


def test_a_job_that_ends_on_a_full_disk_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Jobs._write

    def full(jobs: Jobs, standing: Standing) -> None:
        if standing.has_ended:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(jobs, standing)

    monkeypatch.setattr(Jobs, "_write", full)
    with closing(Jobs(Limits())) as jobs:
        hold(jobs, ANA, tmp_path, "a")
        assert jobs.cancel("a", ANA).state == state(jobs, "a") == "cancelled"
        hold(jobs, ANA, tmp_path, "a")
        assert state(jobs, "a") == "running"


def test_a_job_counts_as_done_after_what_follows_it(tmp_path: Path, folder: Path) -> None:
    spec = {
        "index": str(folder / "news"), "seeds": [{"id": "s", "text": "rain"}],
        "settings": {"unit": "pairs", "order": "rank"}, "judgements": [], "limit": 1,
    }  # fmt: skip
    seen: list[str] = []
    with closing(Jobs(Limits())) as jobs:

        def fail() -> None:
            seen.append(state(jobs, "a"))
            raise InputError("the disk is full")

        jobs.submit("find", spec, ANA, id_="a", ended=fail)
        until(jobs, "a", "failed")
        assert (seen, jobs.get("a", ANA).error) == (["running"], "the disk is full")
        jobs.submit("find", spec, ANA, id_="b", ended=lambda: seen.append(state(jobs, "b")))
        until(jobs, "b", "done")
        assert seen == ["running", "running"]
        found = json.loads(jobs.result("b") or b"")["candidates"]
        assert found and jobs.get("b", ANA).step.done == jobs.get("b", ANA).step.total == len(found)


def test_a_job_that_takes_too_long_or_whose_worker_was_killed_has_failed(tmp_path: Path) -> None:
    with closing(Jobs(Limits(jobs=1, job_seconds=0.2, job_kept=0.0))) as jobs:
        late = hold(jobs, ANA, tmp_path)
        until(jobs, late.id, "failed")
        assert "limit of 0.2 seconds" in jobs.get(late.id, ANA).error
        hold(jobs, ANA, tmp_path)
        with pytest.raises(ProblemError, match="forgotten"):
            jobs.get(late.id, ANA)
    state = {"id": "x", "kind": "find", "owner": "ana", "state": "running", "created": 0, "pid": 4194400}
    (tmp_path / "x.state").write_text(json.dumps(state | {"step": {"what": ""}, "error": ["", "", {}]}))
    jobs = Jobs(Limits(), tmp_path)
    assert jobs.get("x", ANA).state == "failed"
    assert "send the job again" in jobs.get("x", ANA).error
    jobs.close()


def test_the_jobs_end_with_the_service(folder: Path) -> None:
    with client(folder / "news") as api:
        service: Any = api.app.state.service  # type: ignore[attr-defined]  # a FastAPI application
        hold(service.jobs, ANA, folder)
        place = service.jobs._folder
        assert place.exists()
    assert not place.exists()
