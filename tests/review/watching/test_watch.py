"""`linker watch` finds what `linker search` finds, each match once, whatever interrupts it."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from indexes.hybrid import Answer
from indexes.interface import BackendUnavailableError, Document
from linker import Engine, calibrate, watch
from linker.base.errors import InputError
from linker.review.watching import Matcher, Output, Position, PostMatch
from linker.review.watching.matching import Cut
from linker.scoring.probability import cutting
from linker.scoring.ranking import pooled
from tests.helpers import linker, sentence, write_corpus, write_json_lines

SEEDS = 120


def post_about(seed: dict[str, Any], number: int, rng: random.Random) -> dict[str, Any]:
    words = rng.sample(seed["text"].split(), 6) + sentence(rng, 6).split()
    return {"id": f"p{number}", "text": " ".join(words), "metadata": {"likes": number}}


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of seeds with a calibration; next to it posts.jsonl, some of which are about a seed."""
    folder = tmp_path_factory.mktemp("watch")
    corpus, index = write_corpus(folder / "seeds.jsonl", SEEDS), folder / "seeds.index"
    linker("index", "build", corpus, "--out", index)
    rng = random.Random(1)
    records = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    queries, qrels = {}, {}
    for number in range(300):
        seed = rng.choice(records)
        post = post_about(seed, number, rng)
        queries[post["id"]], qrels[post["id"]] = post["text"], {seed["_id"]: 1}
    calibrate(index, queries, qrels)
    posts = [post_about(rng.choice(records), number, rng) for number in range(700)]
    write_json_lines(folder / "posts.jsonl", posts)
    return index


def posts_of(seeds: Path) -> list[Document]:
    lines = (seeds.parent / "posts.jsonl").read_text(encoding="utf-8").splitlines()
    return [Document(**json.loads(line)) for line in lines]


def expected(seeds: Path, least: float = 0.5) -> list[tuple[str, str]]:
    """Return post and seed of every match by searching for each post alone."""
    found = []
    with Engine.open(seeds) as engine:
        for post in posts_of(seeds):
            answer = cutting.by_probability(engine.search(post.full_text), least)
            found += [(post.id, id_) for id_ in answer.hits[0].ids]
    return found


def written(path: Path) -> list[tuple[str, str]]:
    return [(m["id"], m["seed"]) for m in map(json.loads, path.read_text(encoding="utf-8").splitlines())]


def test_it_finds_what_a_search_for_each_post_finds(seeds: Path) -> None:
    found = list[PostMatch]()
    report = watch(seeds, seeds.parent / "posts.jsonl", found.append)
    assert [(m.post.id, m.seed.id) for m in found] == expected(seeds)
    assert 0 < report.matched < report.posts == 700
    assert report.matches == len(found)
    assert report.seeds == len({m.seed.id for m in found})
    assert all(m.probability is not None and m.probability >= 0.5 for m in found)
    strict = watch(seeds, posts_of(seeds), threshold=0.9)
    assert strict.matches == len(expected(seeds, 0.9)) < report.matches
    scored = watch(seeds, posts_of(seeds), score=0, k=2)
    assert scored.matches > report.matches


def test_a_promised_precision_keeps_first_seeds_alone(seeds: Path) -> None:
    found = list[PostMatch]()
    watch(seeds, posts_of(seeds), found.append, precision=0.8)
    with Engine.open(seeds) as engine:
        calibration = engine.calibration
        assert calibration is not None
        promise = calibration.promise(0.8)
        assert promise is not None
        answer = cutting.by_promise(engine.search([p.full_text for p in posts_of(seeds)]), promise)
    assert [m.seed.id for m in found] == [id_ for hits in answer.hits for id_ in hits.ids]
    assert {m.rank for m in found} == {1}
    with pytest.raises(InputError, match="certifies no threshold"):
        watch(seeds, posts_of(seeds), precision=0.9999)


def test_seeds_that_are_added_meanwhile_count(seeds: Path, tmp_path: Path) -> None:
    index = tmp_path / "seeds.index"
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 20), "--out", index)
    found = list[str]()
    posts = [Document(f"p{n}", "zebra quagga") for n in range(300)]  # two batches

    def each(match: PostMatch) -> None:
        if not found:
            with Engine.open(index) as other:
                other.add([Document("new", "quagga"), Document("first", "a zebra quagga")])
                other.delete(["seed"])
        found.append(match.seed.id)

    with Engine.open(index) as engine:
        engine.add([Document("seed", "zebra")])
        watch(engine, posts, each, score=0)
    assert found[0] == "seed"
    assert set(found[256:]) == {"new", "first"}


def test_bad_lines_are_kept_with_their_reasons(seeds: Path, tmp_path: Path) -> None:
    posts = tmp_path / "posts.jsonl"
    posts.write_text('{"id": "p", "text": "x"}\n{bad\n{"id": "q"}\n', encoding="utf-8")
    done = linker("watch", seeds, posts, "--out", tmp_path / "m.jsonl", "--json")
    report = json.loads(done.stdout)
    assert (report["posts"], report["quarantined"]) == (1, 2)
    assert "2 lines could not be used" in done.stderr
    bad = [json.loads(line) for line in Path(report["quarantine"]).read_text(encoding="utf-8").splitlines()]
    assert [(b["line"], b["raw"]) for b in bad] == [(2, "{bad"), (3, '{"id": "q"}')]


def test_a_killed_watch_resumes_without_losing_or_repeating_a_match(seeds: Path, tmp_path: Path) -> None:
    """Kill it with SIGKILL twice, at arbitrary moments, while it follows a growing file."""
    posts, out = tmp_path / "posts.jsonl", tmp_path / "m.jsonl"
    posts.touch()
    lines = (seeds.parent / "posts.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    lines.insert(100, "{bad\n")
    steps = [lines[start : start + 10] for start in range(0, len(lines), 10)]
    command = [sys.executable, "-m", "linker", "watch", seeds, posts, "--follow", "--out", out, "--resume"]
    for turn in range(2):
        part = steps[turn::2]
        with subprocess.Popen([*map(str, command)], stderr=subprocess.DEVNULL) as process:
            before = out.stat().st_size if out.exists() else -1
            for step in part:
                with posts.open("a", encoding="utf-8") as file:
                    file.writelines(step)
                time.sleep(0.01)
            _until(lambda: out.exists() and out.stat().st_size > max(before, 0))  # noqa: B023
            process.send_signal(signal.SIGKILL)
    linker("watch", seeds, posts, "--out", out, "--resume")
    order = [line for turn in range(2) for step in steps[turn::2] for line in step]
    place = {json.loads(line)["id"]: n for n, line in enumerate(order) if line != "{bad\n"}
    assert written(out) == sorted(expected(seeds), key=lambda pair: place[pair[0]])
    quarantine = tmp_path / "m.jsonl.quarantine.jsonl"
    assert len(quarantine.read_text(encoding="utf-8").splitlines()) == 1


def _until(condition: Any) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("nothing was written")


def test_matches_behind_the_last_whole_batch_are_cut_off(tmp_path: Path) -> None:
    posts, out = tmp_path / "posts.jsonl", tmp_path / "m.jsonl"
    posts.touch()
    match = PostMatch(Document("p", "x"), Document("s", "y"), 1, 1.0, None)
    with Output(out, tmp_path / "q", posts) as kept:
        kept.add([match], [], Position(7, 1, 3))
    with out.open("a", encoding="utf-8") as file:
        file.write('{"id": "half')
    with Output(out, tmp_path / "q", posts, resume=True) as kept:
        assert kept.position == Position(7, 1, 3)
        kept.add([match], [], Position(14, 2, 3))
    assert written(out) == [("p", "s")] * 2


def test_posts_wait_while_the_seeds_cannot_be_searched(
    seeds: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine.open(seeds) as engine:
        calls = 0
        search = Engine.search

        def failing(self: Engine, *arguments: Any, **options: Any) -> Answer:
            nonlocal calls
            calls += 1
            if calls < 3:
                raise BackendUnavailableError("the server is down")
            return search(self, *arguments, **options)

        monkeypatch.setattr(Engine, "search", failing)
        matcher = Matcher(engine, Cut(score=0), patience=(0.0,))
        found = list(matcher.match(posts_of(seeds)[:3]))
    assert calls == 3
    assert {m.post.id for m in found} == {"p0", "p1", "p2"}
    assert caplog.text.count("posts wait, since the seeds cannot be searched: the server is down") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", ".9", "--threshold", ".5"], "--precision sets its own threshold"),
        (["--out", "there"], "there exists: continue it with --resume, or name another file"),
        (["--resume"], "--resume needs --out and a file of posts"),
        (["--out", "there", "--resume"], "there.state.json is missing"),
        (["--out", "new/there"], "cannot write new/there"),
    ],
)
def test_a_mistake_is_named(
    seeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").touch()
    done = linker("watch", seeds, seeds.parent / "posts.jsonl", *options, check=1)
    assert message in done.stderr
    assert not done.stdout


def test_a_table_of_posts_is_refused(seeds: Path) -> None:
    assert "is not a file of JSON lines" in linker("watch", seeds, "posts.csv", check=1).stderr


def test_seeds_without_a_calibration_say_so_before_the_first_post(tmp_path: Path) -> None:
    index = tmp_path / "plain.index"
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 5), "--out", index)
    done = linker("watch", index, "-", check=1)
    assert "the index has no calibration: fit one with `linker calibrate`" in done.stderr
    assert "the posts (- is stdin)" in linker("watch", index, check=2).stderr


def test_a_damaged_state_is_named(tmp_path: Path) -> None:
    posts, state = tmp_path / "posts.jsonl", tmp_path / "m.jsonl.state.json"
    posts.touch()
    for content, said in (("{}", "is damaged"), ('{"version": 1, "posts": "x"}', "belongs to x")):
        state.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            Output(tmp_path / "m.jsonl", tmp_path / "q", posts, resume=True)


def test_a_ranker_that_saw_no_post_without_a_link_is_left_aside(
    seeds: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(seeds, tmp_path / "both")
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 20), "--out", tmp_path / "alone")
    for name in ("both", "alone"):
        with Engine.open(tmp_path / name) as engine:
            engine.store_ranker(pooled.FOLDER)
    found = list[PostMatch]()
    watch(tmp_path / "both", posts_of(seeds)[:50], found.append)
    with Engine.open(seeds) as engine:
        answer = cutting.by_probability(engine.search([p.full_text for p in posts_of(seeds)[:50]]), 0.5)
    assert [m.seed.id for m in found] == [id_ for hits in answer.hits for id_ in hits.ids]
    assert "P(link) is that of `linker calibrate`" in caplog.text
    with pytest.raises(InputError, match="run `linker calibrate` on judged posts"):
        watch(tmp_path / "alone", posts_of(seeds)[:1])
    assert watch(tmp_path / "alone", posts_of(seeds)[:5], score=0).posts == 5
