"""Folders of sentence-transformers and transformers that contain code: it never runs, whatever loads them."""

import dataclasses
import json
import os
import shutil
from pathlib import Path

import pytest

from indexes.disk.writing import record_of
from indexes.store import manifest as manifests
from indexes.store.files import replace_manifest
from linker.base.errors import InputError
from linker.encoders import folder as folders
from linker.encoders.configs import BagConfig
from linker.encoders.foreign import check_foreign
from linker.encoders.loading import load_encoder
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import Vocabulary, WordTokenizer
from linker.scoring.pairs.backbone import empty_backbone, load_backbone
from tests.helpers import linker, tiny_bert, write_corpus

CODE = """
import os, pathlib
pathlib.Path(os.environ["CANARY"]).write_text("sung")
from sentence_transformers.models import Pooling as Evil
from transformers import BertConfig as EvilConfig, BertTokenizer as EvilTokenizer
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a real sentence-transformers model: a tiny BERT with random weights, and pooling."""
    models = pytest.importorskip("sentence_transformers").sentence_transformer.modules
    place = tmp_path_factory.mktemp("foreign")
    transformer = models.Transformer(str(tiny_bert(place / "bert", ["rain", "sun"])))
    pooling = models.Pooling(32)
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(place / "model"))
    return place / "model"


@pytest.fixture
def evil(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy with code next to it that writes the file CANARY when it is imported."""
    monkeypatch.setenv("CANARY", str(tmp_path / "canary"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(sound, tmp_path / "evil")
    (tmp_path / "evil" / "modeling_evil.py").write_text(CODE, encoding="utf-8")
    return tmp_path / "evil"


def change(path: Path, **entries: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()) | entries), encoding="utf-8")


def add_module(folder: Path, kind: str) -> None:
    path = folder / "modules.json"
    modules = json.loads(path.read_bytes())
    path.write_text(
        json.dumps([*modules, {"idx": 9, "name": "9", "path": "", "type": kind}]), encoding="utf-8"
    )


def test_a_sound_folder_loads(sound: Path) -> None:
    assert load_encoder(sound).encode(["rain"]).shape == (1, 32)
    assert load_backbone(sound).dim == 32


@pytest.mark.parametrize(
    "kind", ["modeling_evil.Evil", "os.system", "sentence_transformers.models.Asym", "x"]
)
def test_a_module_of_its_own_never_runs(evil: Path, kind: str) -> None:
    add_module(evil, kind)
    for load in (load_encoder, load_backbone):
        with pytest.raises(InputError, match=r"modules\.json names the module"):
            load(evil)
    assert not (evil.parent / "canary").exists()


AUTO = {"AutoConfig": "modeling_evil.EvilConfig", "AutoTokenizer": ["modeling_evil.EvilTokenizer", None]}


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("config.json", {"auto_map": AUTO}), ("tokenizer_config.json", {"auto_map": AUTO}),
        ("config.json", {"_attn_implementation": "someone/kernel"}),
        ("sentence_bert_config.json", {"model_args": {"trust_remote_code": True}}),
        ("sentence_bert_config.json", {"model_kwargs": {"device_map": "auto"}}),
        ("config.json", {"num_hidden_layers": 100_000}), ("config.json", {"vocab_size": 1 << 40}),
        ("config.json", {"transformers_weights": "../../x.safetensors"}),
    ],
)  # fmt: skip
def test_entries_with_code_or_beyond_bounds_are_refused(
    evil: Path, name: str, entries: dict[str, object]
) -> None:
    change(evil / name, **entries)
    for load in (load_encoder, load_backbone):
        with pytest.raises(InputError, match=name):
            load(evil)
    assert not (evil.parent / "canary").exists()


def test_what_a_configuration_claims_is_not_allocated(evil: Path) -> None:
    change(evil / "config.json", hidden_size=16_384, vocab_size=9_000_000)  # 590 GB
    with pytest.raises(InputError, match=r"holds .* weights, but its config.json describes"):
        load_backbone(evil)


def test_pickles_adapters_pipes_and_devices_are_refused(evil: Path) -> None:
    (evil / "adapter_config.json").write_text('{"base_model_name_or_path": "someone/else"}')
    with pytest.raises(InputError, match="merge the adapter"):
        load_encoder(evil)
    (evil / "adapter_config.json").unlink()
    weights = evil / "model.safetensors"
    weights.rename(evil / "pytorch_model.bin")
    with pytest.raises(InputError, match="as a pickle"):
        load_encoder(evil)
    os.mkfifo(weights)
    with pytest.raises(InputError, match="not a regular file"):
        load_encoder(evil)
    (evil / "config.json").unlink()
    (evil / "config.json").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="not a regular file"):
        load_encoder(evil)


def test_a_folder_inside_a_model_holds_neither_links_nor_code(evil: Path) -> None:
    with pytest.raises(InputError, match=r"modeling_evil\.py is code"):
        empty_backbone(evil, "x", 128)
    (evil / "modeling_evil.py").unlink()
    check_foreign(evil, strict=True)
    (evil / "notes.txt").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match="is a link"):
        load_backbone(evil, strict=True)


def test_an_encoder_folder_inside_an_index_never_runs_code(evil: Path, tmp_path: Path) -> None:
    tokenizer = WordTokenizer(Vocabulary.of("abc"))
    folders.save(TextEncoder.new(BagConfig(4), tokenizer), tmp_path / "own")
    out = tmp_path / "index"
    linker(
        "index", "build", write_corpus(tmp_path / "c.jsonl", 5), "--encoder", tmp_path / "own", "--out", out
    )
    (inside,) = (out / "encoder").iterdir()
    add_module(evil, "modeling_evil.Evil")
    shutil.rmtree(inside)
    shutil.copytree(evil, inside)
    manifest = manifests.load(out)  # the attacker writes valid checksums
    files = {name: record for name, record in manifest.files.items() if not name.startswith("encoder/")}
    files |= {p.relative_to(out).as_posix(): record_of(p) for p in inside.iterdir() if p.is_file()}
    replace_manifest(out, dataclasses.replace(manifest, files=files))
    done = linker("search", out, "--text", "rain", "--mode", "dense", check=None)
    assert done.returncode
    assert "name the encoder with --encoder" in done.stderr
    linker("search", out, "--text", "rain", check=None)
    linker("index", "info", out, check=None)
    linker("index", "verify", out, check=None)
    assert not (tmp_path / "canary").exists()


def test_a_name_in_a_file_is_no_route_to_the_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    asked = []

    def recorded(name: str, **options: object) -> None:
        asked.append(options["local_files_only"])
        assert options["trust_remote_code"] is False
        raise OSError("no such model")

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", recorded)
    with pytest.raises(InputError, match="is not fetched because a folder names it"):
        load_encoder("someone/model", fetch=False)
    assert asked == []
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    (tmp_path / "models--someone--model").mkdir()
    with pytest.raises(InputError, match="cannot be loaded"):
        load_encoder("someone/model", fetch=False)
    assert asked == [True]
