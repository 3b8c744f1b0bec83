from pathlib import Path

import pytest

from linker import demo
from linker.demo_training import Story, lee_stories
from linker.evaluation import evaluate


@pytest.mark.slow
def test_the_demo_runs_end_to_end_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a third of the stories, with a model trained for one epoch: the whole way, not the quality."""
    import linker.demo_training as training

    background, test = lee_stories()
    few: tuple[list[Story], list[Story]] = background[:100], test[:20]
    monkeypatch.setattr(training, "lee_stories", lambda: few)
    monkeypatch.setattr(demo, "lee_stories", lambda: few)
    demo.run(tmp_path / "out")
    first = capsys.readouterr()
    assert "training a star encoder on 100 stories" in first.err
    assert first.out.count("ms per query") == 8
    assert first.out.count("  tuned: ") == 2 and first.out.count("Why the last row") == 1
    demo.run(tmp_path / "out")
    second = capsys.readouterr()
    assert "training" not in second.err
    figures = evaluate(
        tmp_path / "out/post2article.qrels", tmp_path / "out/post2article.bm25.run", ["recip_rank"]
    )
    assert f"{figures['recip_rank']:.3f}" in second.out
    assert figures["recip_rank"] > 0.5


def test_openings_and_rests_are_disjoint_between_training_and_test() -> None:
    background, test = lee_stories()
    assert len(background) > 250
    assert len(test) > 40
    assert not {s.opening for s in background} & {s.opening for s in test}
    assert all(s.opening and s.rest for s in (*background, *test))
