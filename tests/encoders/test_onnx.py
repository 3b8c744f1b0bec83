"""Models exported to ONNX give the same vectors as PyTorch, and are chosen if they fit."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from indexes.interface import Document
from linker import Engine, create
from linker.base.errors import InputError
from linker.encoders import folder as folders
from linker.encoders.configs import BagConfig, CnnConfig, GruConfig, ModelConfig, StarConfig
from linker.encoders.loading import load_encoder
from linker.encoders.onnx_export import export
from linker.encoders.onnx_model import OnnxEncoder, load_onnx
from linker.encoders.opened import export_own
from linker.encoders.text import TextEncoder
from linker.encoders.tokens import Tokenizer, Vocabulary, WordTokenizer
from linker.encoders.tokens.pieces import PieceTokenizer
from tests.helpers import linker

WORDS = [f"w{n}" for n in range(60)]
# The second layer's tokens also attend to their own word vectors; every export of a star takes seconds.
PAPER = StarConfig(dim=8, heads=2, head_dim=4, layers=2, window=1, layer_norm=True, leaky_relu=True)
KEYS = StarConfig(
    dim=8, heads=3, head_dim=4, residual=True, pre_norm=True, contrast=1.0, max_weight=0.1, key_inputs=True
)


def pieces() -> Tokenizer:
    from tokenizers import Tokenizer as Library
    from tokenizers.models import WordPiece
    from tokenizers.pre_tokenizers import Whitespace

    names = ["[PAD]", "[UNK]", "w", *(f"##{n}" for n in range(10))]
    made = Library(WordPiece({name: n for n, name in enumerate(names)}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    return PieceTokenizer(made.to_str())


def trained(
    config: ModelConfig, folder: Path, tokenizer: Tokenizer | None = None, max_length: int = 40
) -> TextEncoder:
    """Save a model whose weights are far from their initial values; every head has its own α."""
    torch.manual_seed(7)
    encoder = TextEncoder.new(config, tokenizer or WordTokenizer(Vocabulary.of(WORDS)), max_length)
    with torch.no_grad():
        for name, parameter in encoder.module.named_parameters():
            if "alpha" in name:
                parameter.copy_(torch.linspace(-5, 5, len(parameter)))  # from softmax to nearly sparsemax
            else:
                parameter.copy_(torch.randn_like(parameter) * 0.6)
        if "key_inputs.idf" in dict(encoder.module.named_buffers()):
            encoder.module.get_buffer("key_inputs.idf").copy_(torch.rand(encoder.tokenizer.size))
    folders.save(encoder, folder)
    return encoder


def texts(count: int = 40) -> list[str]:
    random = np.random.default_rng(1)
    lengths = [0, 1, 2, 7, 8, 9, 60, *random.integers(1, 50, count)]
    return [" ".join(WORDS[min(int(w), 59)] for w in random.zipf(1.3, n)) for n in lengths]


@pytest.mark.parametrize(
    ("config", "tokenizer"),
    [(PAPER, None), (KEYS, pieces), (BagConfig(8, projection=5), None), (CnnConfig(8, (2, 3), 6), None)],
    ids=["paper", "keys and pieces", "bag", "cnn"],
)  # fmt: skip
def test_onnx_runtime_gives_the_vectors_of_pytorch(
    config: ModelConfig, tokenizer: type[Tokenizer] | None, tmp_path: Path
) -> None:
    torch_one = trained(config, tmp_path / "m", tokenizer() if tokenizer else None)
    export(tmp_path / "m")
    light = load_encoder(tmp_path / "m", light=True)
    assert isinstance(light, OnnxEncoder)
    assert (light.fingerprint, light.dim) == (torch_one.fingerprint, torch_one.dim)
    expected = torch_one.encode(texts())
    vectors = light.encode(texts(), batch_size=5)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-4)
    one_by_one = np.concatenate([light.encode([text]) for text in texts()])
    np.testing.assert_allclose(one_by_one, expected, atol=1e-4)
    assert light.encode([]).shape == (0, torch_one.dim)
    assert (vectors * expected).sum(1)[1:].min() > 0.9999


def test_a_model_of_recurrent_layers_is_refused_by_name(tmp_path: Path) -> None:
    trained(GruConfig(8, hidden=6), tmp_path / "m")
    with pytest.raises(InputError, match=r"is a gru model.*PyTorch"):
        export(tmp_path / "m")
    assert isinstance(load_encoder(tmp_path / "m", light=True), TextEncoder)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "m"
    trained(BagConfig(8), folder)
    export(folder)
    return folder


def test_a_graph_of_other_weights_is_left_aside(exported: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(exported, tmp_path / "m")
    other = load_encoder(folder)
    assert isinstance(other, TextEncoder)
    with torch.no_grad():
        other.module.get_submodule("embedding").get_parameter("weight").mul_(-1)
    folders.save_weights(other, folder)
    assert load_onnx(folder) is None
    loaded = load_encoder(folder, light=True)
    assert isinstance(loaded, TextEncoder)
    np.testing.assert_array_equal(loaded.encode(["w1 w2"]), other.encode(["w1 w2"]))
    folders.save(other, folder)
    assert not (folder / "model.onnx").exists(), (
        "a model that is saved again drops the graph of the earlier one"
    )


@pytest.mark.parametrize("content", [b"", b"no graph", b"\x08\x07" * 100])
def test_a_damaged_graph_is_named(exported: Path, tmp_path: Path, content: bytes) -> None:
    folder = shutil.copytree(exported, tmp_path / "m")
    (folder / "model.onnx").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.onnx cannot be run.*export it again"):
        load_encoder(folder, light=True)


@pytest.mark.parametrize("place", ["../secret", "/etc/hostname"])
def test_a_graph_reads_no_file_outside_its_folder(exported: Path, tmp_path: Path, place: str) -> None:
    onnx = pytest.importorskip("onnx")
    folder = shutil.copytree(exported, tmp_path / "m")
    shutil.copy(folder / "model.safetensors", tmp_path / "secret")
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = place if entry.key == "location" else entry.value
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="cannot be run"):
        load_encoder(folder, light=True)


DENSE = """
import sys
from linker.cli import main
sys.argv = ["linker", "search", sys.argv[1], "--text", "w3 w4 w5", "--mode", "dense", "--json"]
try:
    main()
finally:
    heavy = {"torch", "sklearn", "scipy", "gensim", "transformers", "pandas"} & sys.modules.keys()
    print(*heavy, file=sys.stderr)
"""


def test_an_index_searches_by_its_exported_encoder_without_pytorch(tmp_path: Path) -> None:
    trained(BagConfig(8), tmp_path / "m", max_length=9)
    create(tmp_path / "index", encoder=tmp_path / "m")
    documents = [Document(f"d{n}", text or "w0") for n, text in enumerate(texts())]
    with Engine.open(tmp_path / "index") as engine:
        engine.add(documents)
        assert isinstance(engine.encoder, TextEncoder)
        expected = engine.search("w3 w4 w5", mode="dense").hits[0]
    path = export_own(tmp_path / "index")
    assert path.is_relative_to(tmp_path / "index")
    linker("index", "verify", tmp_path / "index")
    with Engine.open(tmp_path / "index") as engine:
        assert isinstance(engine.encoder, OnnxEncoder)
        hits = engine.search("w3 w4 w5", mode="dense").hits[0]
        assert hits.ids == expected.ids
        np.testing.assert_allclose(hits.scores, expected.scores, atol=1e-4)
    done = subprocess.run(
        [sys.executable, "-c", DENSE, tmp_path / "index"], capture_output=True, text=True, check=True, timeout=60
    )  # fmt: skip
    assert expected.ids[0] in done.stdout
    assert not done.stderr.strip(), "a dense query loads what it does not need"


def test_the_command_exports_a_model_and_refuses_an_index_without_one(tmp_path: Path) -> None:
    trained(BagConfig(8), tmp_path / "m")
    assert linker("export", tmp_path / "m").stdout.strip() == str(tmp_path / "m" / "model.onnx")
    create(tmp_path / "index")
    assert "holds no encoder of its own" in linker("export", tmp_path / "index", check=1).stderr
