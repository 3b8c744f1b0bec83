"""Model folders: saved whole or not at all, whatever fails; foreign folders are data within limits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from indexes.disk import faults
from linker.base.errors import InputError
from linker.encoders import folder as folders
from linker.encoders.configs import BagConfig, StarConfig
from linker.encoders.loading import load_encoder, load_own
from linker.encoders.model_folder import replacing
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import Vocabulary, WordTokenizer
from tests.encoders.hostile_models import attack

TOKENIZER = WordTokenizer(Vocabulary.of("abc"))


def encoder(seed: int) -> TextEncoder:
    torch.manual_seed(seed)
    return TextEncoder.new(BagConfig(4), TOKENIZER, max_length=20)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folders.save(encoder(0), tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize("failing", [0, 1, 2, 3])
def test_a_failed_save_leaves_the_earlier_model(
    model: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Each rename fails in turn: setting the old model aside, moving the new one in, putting the old one back."""
    rename, calls = os.rename, iter(range(9))

    def failing_rename(*arguments: object) -> None:
        if next(calls) >= failing:
            raise OSError(5, "Input/output error")
        rename(*arguments)  # type: ignore[arg-type]  # as it was called

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", failing_rename)
        if failing < 2:
            with pytest.raises(InputError, match="Input/output error"):
                folders.save(encoder(1), model)
        else:
            folders.save(encoder(1), model)
    # the old model could not be restored either: the error names it, and the next save finds it
    if failing == 1:
        with pytest.raises(InputError, match=r"earlier model is in .*\.m\.linker-old"):
            folders.load(model)
        with pytest.raises(InputError, match="no encoder"), replacing(model, [], "encoder"):
            pass
    expected = encoder(0 if failing < 2 else 1)
    assert load_encoder(model).fingerprint == expected.fingerprint
    assert [path.name for path in model.parent.iterdir()] == ["m"]


def killed_at(point: str, model: TextEncoder, folder: Path) -> int:
    """Save in a child process that dies at a point; return the signal that ended it."""
    child = os.fork()  # cheaper than another import of PyTorch
    if not child:
        try:
            name, _, passing = point.partition(":")
            faults._NAME, faults._PASSING = name, passing
            folders.save(model, folder)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    "point", ["file.unflushed:3", "model.written", "model.aside", "model.placed", "model.cleaned"]
)
def test_a_save_that_is_killed_leaves_the_old_or_the_new_model(model: Path, point: str) -> None:
    assert killed_at(point, encoder(1), model) == -9
    if point == "model.aside":
        with pytest.raises(InputError, match="rename that folder"):
            folders.load(model)
    else:
        expected = encoder(1 if point in ("model.placed", "model.cleaned") else 0)
        assert load_encoder(model).fingerprint == expected.fingerprint
    folders.save(encoder(2), model)
    assert load_encoder(model).fingerprint == encoder(2).fingerprint
    assert [path.name for path in model.parent.iterdir()] == ["m"]


def test_everything_is_flushed_before_it_is_renamed(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[tuple[str, str]] = []
    fsync, rename = os.fsync, os.rename

    def logged_fsync(descriptor: int) -> None:
        log.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        fsync(descriptor)

    def logged_rename(source: Path, target: Path) -> None:
        log.append(("rename", str(target)))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(os, "rename", logged_rename)
    folders.save(encoder(1), model)
    new = model.parent / ".m.linker-new"
    renamed = log.index(("rename", str(model)))
    parts = [new / name for name in ("config.json", "tokenizer.json", "model.safetensors", "README.md")]
    assert {str(path) for path in (*parts, new)} <= {path for what, path in log[:renamed] if what == "sync"}
    assert log[renamed - 2][1] == str(new)  # the folder after its files; then the old folder is set aside
    assert ("sync", str(model.parent)) in log[renamed:]


def test_what_is_the_users_is_kept_or_the_folder_refused(model: Path, tmp_path: Path) -> None:
    (model / "NOTES.md").write_text("mine")
    (model / "training").mkdir()
    (model / "training" / "state").write_text("x")
    folders.save(encoder(1), model)
    assert (model / "NOTES.md").read_text() == "mine"
    assert (model / "training" / "state").read_text() == "x"
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="holds no encoder"):
        folders.save(encoder(1), other)
    assert (other / "config.json").read_text() == '{"model_type": "bert"}'


def test_no_folder_from_elsewhere_gets_through(tmp_path: Path) -> None:
    torch.manual_seed(0)
    star = TextEncoder.new(StarConfig(dim=8, heads=2, head_dim=4), TOKENIZER, 20)
    folders.save(star, tmp_path / "sound")
    (tmp_path / "sound" / "README.md").unlink()
    found = attack(tmp_path / "sound", lambda folder: folders.load(folder).fingerprint, tmp_path, 100)
    assert set(found) <= {"refused", "same"}
    assert found["refused"] > 300


@pytest.mark.parametrize(("key", "value"), [("layers", 100_000), ("dim", 1 << 30), ("heads", 10_000)])
def test_a_limit_is_named_with_its_file(model: Path, key: str, value: int) -> None:
    settings = json.loads((model / "config.json").read_text())
    settings |= {"kind": "star", "model": {key: value}}
    (model / "config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match=rf"config\.json: {key} = {value} exceeds"):
        load_encoder(model)


def test_an_index_gives_no_encoder_but_its_own(model: Path, tmp_path: Path) -> None:
    assert load_own(tmp_path, "m").fingerprint == encoder(0).fingerprint
    for name in ("../elsewhere", "m/../m"):
        with pytest.raises(InputError, match="is outside the index"):
            load_own(tmp_path, name)
    (tmp_path / "link").symlink_to(model)
    with pytest.raises(InputError, match="is a link"):
        load_own(tmp_path, "link")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="no other model is loaded from inside an index"):
        load_own(tmp_path, "foreign")


def test_loading_does_not_load_pytorchs_compiler(model: Path) -> None:
    """It takes nine seconds of CPU time, which the device "meta" spends if asked for random numbers."""
    code = (
        "import sys; from linker import load_encoder; load_encoder(sys.argv[1]); "
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, model], check=True, timeout=120)
