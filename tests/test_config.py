import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from linker.base.config import load
from linker.base.errors import ConfigError
from linker.training.config import TrainingConfig


@dataclass(frozen=True)
class Inner:
    kind: Literal["star", "bag"] = "star"
    lr: float = 1e-3
    windows: tuple[int, ...] = (1, 2)

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise ValueError("lr must be positive")


@dataclass(frozen=True)
class Outer:
    data: Path
    encoder: Inner = field(default_factory=Inner)
    seed: int | None = None
    vectors: Path | Literal["random"] = "random"


def write(folder: Path, text: str) -> Path:
    path = folder / "c.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_tables_and_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, 'data = "a b"\nvectors = "x.txt"\n[encoder]\nlr = 1\nwindows = [3]\n')
    got = load(path, Outer, ["encoder.kind=bag", "seed = 7", "encoder.lr=0.5"])
    assert got == Outer(Path("a b"), Inner("bag", 0.5, (3,)), 7, Path("x.txt"))


@pytest.mark.parametrize(
    ("text", "overrides", "expected"),
    [
        ('data = "x"\n[encoder]\nkimd = "bag"\n', [], "unknown key encoder.kimd: did you mean encoder.kind?"),
        ('data = "x"\nzzz = 1\n', [], "unknown key zzz: known here: data, encoder, seed, vectors"),
        ("seed = 1\n", [], "missing key data"),
        ('data = "x"\n[encoder]\nkind = "cnn"\n', [], "encoder.kind = 'cnn': choose one of 'star', 'bag'"),
        ('data = "x"\nseed = "1"\n', [], "seed = '1' is str, expected int"),
        ('data = "x"\nseed = true\n', [], "seed = True is bool, expected int"),
        ('data = "x"\n[encoder]\nlr = true\n', [], "encoder.lr = True is bool, expected float"),
        ('data = "x"\nencoder = 3\n', [], "encoder = 3 is int, expected Inner"),
        ('data = "x"\n[encoder]\nlr = -1.0\n', [], "lr must be positive"),
        ("data = \n", [], "cannot read"),
        ('data = "x"\n', ["encoder.lr"], "write table.key=value"),
        ('data = "x"\n', ["data.deep=1"], "data is a value, not a table"),
    ],
)
def test_mistakes_are_named_with_file(tmp_path: Path, text: str, overrides: list[str], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, text), Outer, overrides)
    assert expected in str(caught.value)
    assert "c.toml" in str(caught.value) or "--set" in str(caught.value)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "none.toml", Outer)
    path = write(tmp_path, f'data = "a"\n[encoder]\nlr = 1{"0" * 400}\n')
    with pytest.raises(ConfigError, match=r"encoder\.lr is too large"):
        load(path, Outer)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lr": 0.0}, "training.lr must be above 0"),
        ({"batch_size": 0}, "training.batch_size must be above 0"),
        ({"temperature": math.inf}, "training.temperature must be above 0"),
        ({"cloze": -1}, "training.cloze must be at least 0"),
        ({"margin": math.nan}, "training.margin must be at least 0"),
        ({"warmup": 1.0}, "at least 0 and below 1"),
        ({"word_dropout": -0.1}, "at least 0 and below 1"),
    ],
)
def test_a_trainings_numbers_have_bounds(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**values)


def test_a_trainings_bounds_are_allowed() -> None:
    TrainingConfig(margin=0.0, cloze=0, warmup=0.0, word_dropout=0.0, batch_size=1)
