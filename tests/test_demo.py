import dataclasses
from pathlib import Path

import pytest

from indexes.fusion import Fusion
from linker.demo import run as demo
from linker.demo.training import SplitStory, lee_stories, split_stories
from linker.engine.tuning import Lead, SearchSetting, Tuning
from linker.evaluation import evaluate
from tests.server.page.support import client


@pytest.mark.slow
def test_the_demo_runs_end_to_end_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a third of the stories, with a model trained for one epoch: the whole workflow, not the quality."""
    import linker.demo.training as training

    background, test = lee_stories()
    few: tuple[list[SplitStory], list[SplitStory]] = background[:100], test[:20]
    monkeypatch.setattr(training, "lee_stories", lambda: few)
    demo.run(tmp_path / "out")
    first = capsys.readouterr()
    assert "training a star encoder on 34 stories" in first.err
    assert first.out.count("ms per query") == 8
    assert first.out.count("  tuned: ") == 3 and first.out.count("Why the last row") == 1
    assert f"linker serve {tmp_path}/out/posts.index" in first.out
    with client(tmp_path / "out" / "posts.index") as browser:
        assert "Start reviewing" in browser.get("/").text
    demo.run(tmp_path / "out")
    second = capsys.readouterr()
    assert "training" not in second.err
    figures = evaluate(
        tmp_path / "out/post2article.qrels", tmp_path / "out/post2article.bm25.run", ["recip_rank"]
    )
    assert f"{figures['recip_rank']:.3f}" in second.out
    assert figures["recip_rank"] > 0.5


def test_the_parts_of_the_stories_are_disjoint_and_drawn_by_the_seed() -> None:
    known, dev, test = split_stories(0)
    assert (len(known), len(dev), len(test)) == (98, 120, 120)
    assert len({story.id for part in (known, dev, test) for story in part}) == 338
    assert split_stories(0) == (known, dev, test) != split_stories(1)


def test_the_last_line_says_whether_the_last_row_is_the_best() -> None:
    plain = SearchSetting("hybrid", Fusion(), {"mrr": 0.5})
    better = SearchSetting("hybrid", Fusion("rrf", (0.5, 0.5)), {"mrr": 0.6})
    tuning = Tuning(better, plain, (plain, better), "mrr", 10, "", Lead(0.1, 0.02), {}, 5)
    assert demo._why(tuning, {"BM25": 0.4, "dense": 0.5, "tuned": 0.6}) == (
        "Why the last row: it leads the untuned hybrid by 0.1000 (0.0600 to 0.1400) on 10 dev links, and is the best "
        "here, too."
    )
    assert "but here dense is 0.010 ahead" in demo._why(tuning, {"BM25": 0.4, "dense": 0.61, "tuned": 0.6})
    kept = dataclasses.replace(tuning, chosen=plain)
    assert "nothing is clearly ahead of it on 10 dev links, and" in demo._why(
        kept, {"BM25": 0.4, "tuned": 0.6}
    )


def test_openings_and_rests_are_disjoint_between_training_and_test() -> None:
    background, test = lee_stories()
    assert len(background) > 250
    assert len(test) > 40
    assert not {s.opening for s in background} & {s.opening for s in test}
    assert all(s.opening and s.rest for s in (*background, *test))
