"""Untrusted graphs: loops, files, functions, endless work, outputs that are no vectors; each refused in one line."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes.interface import BackendUnavailableError, Document
from indexes.store import files as storage
from indexes.store import manifest as manifests
from linker import Engine, create
from linker.base.errors import InputError
from linker.encoders import onnx_model
from linker.encoders.configs import BagConfig
from linker.encoders.loading import load_encoder
from linker.encoders.onnx_checks import GraphError, check_graph
from linker.encoders.onnx_export import export
from linker.encoders.onnx_model import OnnxEncoder, load_onnx
from linker.encoders.opened import OwnEncoder, export_own, graph_damage
from tests.encoders.test_onnx import trained
from tests.fuzz.store import replace
from tests.helpers import linker

onnx = pytest.importorskip("onnx")
DIM = 8
Change = Callable[[Any], None]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "m"
    trained(BagConfig(DIM), folder)
    export(folder)
    return folder


def changed(sound: Path, folder: Path, change: Change) -> Path:
    shutil.copytree(sound, folder)
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    change(model)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder


def node(*args: Any, **attributes: Any) -> Any:
    return onnx.helper.make_node(*args, **attributes)


def constant(name: str, value: Any, kind: Any = np.int64) -> Any:
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(value, kind), name))


def body() -> Any:
    value = onnx.helper.make_tensor_value_info
    names = [value("i", 7, []), value("go", 9, [])]
    return onnx.helper.make_graph([node("Identity", ["go"], ["on"])], "body", names, [value("on", 9, [])])


def loop(model: Any) -> None:
    model.graph.node.extend([constant("count", 1 << 62), constant("yes", True, bool)])
    model.graph.node.append(node("Loop", ["count", "yes"], [], body=body()))


def subgraph(model: Any) -> None:
    model.graph.node.append(node("Identity", ["mask"], ["same"], body=body()))


def function(model: Any) -> None:
    opset = onnx.helper.make_opsetid("", 18)
    model.functions.append(onnx.helper.make_function("own", "Identity", ["x"], ["y"], [], [opset]))


def another_domain(model: Any) -> None:
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))


def operator_of_another_domain(model: Any) -> None:
    model.graph.node.append(node("Identity", ["mask"], ["same"], domain="com.microsoft"))


def operator(name: str) -> Change:
    return lambda model: model.graph.node.append(node(name, ["mask"], ["same"]))


def sparse(model: Any) -> None:
    model.graph.sparse_initializer.add()


def strings(model: Any) -> None:
    model.graph.node.append(node("Constant", [], ["text"], value_strings=[b"x"]))


def another_file(model: Any) -> None:
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = "config.json" if entry.key == "location" else entry.value


REFUSED: dict[str, tuple[Change, str]] = {
    "loop": (loop, "'Loop'"),
    "subgraph": (subgraph, "does not have"),
    "function": (function, "does not have"),
    "domain": (another_domain, "com.microsoft"),
    "operator of a domain": (operator_of_another_domain, "com.microsoft"),
    "sparse": (sparse, "does not have"),
    "strings": (strings, "does not have"),
    "file": (another_file, r"other than model\.safetensors"),
    **{
        name: (operator(name), f"'{name}'")
        for name in ("If", "Scan", "SequenceMap", "RandomNormal", "Unique")
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_exported_encoder_holds_is_refused_before_it_is_loaded(
    case: str, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, reason = REFUSED[case]
    folder = changed(sound, tmp_path / "m", change)
    monkeypatch.setattr("onnxruntime.InferenceSession", pytest.fail)
    with pytest.raises(InputError, match=rf"model\.onnx cannot be run: .*{reason}"):
        load_onnx(folder)


def test_a_graph_cannot_be_hidden_in_a_second_one(sound: Path, tmp_path: Path) -> None:
    """Protobuf merges repeated messages, and takes the last of repeated values."""
    content = (sound / "model.onnx").read_bytes()
    check_graph(content)
    with pytest.raises(GraphError, match="several"):
        check_graph(content + b"\x3a\x00")
    twice = b"\x22\x04Loop\x22\x08Identity"  # an operator with two names
    inner = b"\x0a" + bytes([len(twice)]) + twice
    with pytest.raises(GraphError, match="'Loop'"):
        check_graph(b"\x3a" + bytes([len(inner)]) + inner)


@pytest.mark.parametrize(
    "content", [b"\x3a\xff\xff\xff\xff\x0f", b"\x3b", b"\x3a", b"\xff" * 30, b"\x38\x00", b"\x3a\x01"]
)
def test_bytes_that_are_no_graph(content: bytes) -> None:
    with pytest.raises(GraphError):
        check_graph(content)


def test_names_beyond_unicode_are_one_line(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "m"))
    content = (folder / "model.onnx").read_bytes()
    start = content.rindex(b"fingerprint") + len(b"fingerprint") + 2
    for broken in (content[:start] + b"\xff" + content[start + 1 :], content.replace(b"mask", b"ma\xff\xfe")):
        assert broken != content and len(broken) == len(content)
        (folder / "model.onnx").write_bytes(broken)
        with pytest.raises(InputError, match="cannot be run"):
            assert (encoder := load_onnx(folder)) and encoder.encode(["w1"])
    assert not capsys.readouterr().out


def outputs(value: float, dim: int = DIM) -> Change:
    def change(model: Any) -> None:
        """Set every coordinate of every text to the same number."""
        graph = model.graph
        graph.node[-1].output[0] = "before"
        axis = constant("zero", [0])
        graph.node.extend(
            [node("Shape", ["ids"], ["size"]), axis, node("Gather", ["size", "zero"], ["texts"], axis=0)]
        )
        graph.node.extend([constant("dim", [dim]), node("Concat", ["texts", "dim"], ["shape"], axis=0)])
        graph.node.extend(
            [constant("value", value, np.float32), node("Expand", ["value", "shape"], ["vectors"])]
        )
        graph.output[0].type.tensor_type.shape.dim[1].dim_value = dim

    return change  # fmt: skip


@pytest.mark.parametrize(
    ("value", "dim", "reason"),
    [
        (1e31, DIM, "length is not 1"), (0.1, DIM, "length is not 1"), (float("nan"), DIM, "length is not 1"),
        (float("inf"), DIM, "length is not 1"), (1, DIM + 1, "vectors of 8 dimensions"),
    ],
)  # fmt: skip
def test_vectors_are_of_length_one_and_of_the_model_s_dimension(
    value: float, dim: int, reason: str, sound: Path, tmp_path: Path
) -> None:
    encoder = load_onnx(changed(sound, tmp_path / "m", outputs(value, dim)))
    assert encoder
    with pytest.raises(InputError, match=reason):
        encoder.encode(["w1 w2"])
    fine = load_onnx(changed(sound, tmp_path / "fine", outputs(DIM**-0.5)))
    assert fine and np.allclose(fine.encode(["w1", ""]), DIM**-0.5)


def test_a_graph_that_asks_for_all_memory_is_refused(sound: Path, tmp_path: Path) -> None:
    def change(model: Any) -> None:
        model.graph.node.extend([constant("many", [200_000_000, 8]), constant("one", 1, np.float32)])
        model.graph.node[-3].output[0] = "before"
        model.graph.node.extend(
            [node("Expand", ["one", "many"], ["large"]), node("ReduceSum", ["large"], ["sum"])]
        )
        model.graph.node.append(node("Mul", ["before", "sum"], ["vectors"]))

    encoder = load_onnx(changed(sound, tmp_path / "m", change))
    assert encoder
    with pytest.raises(InputError, match=r"cannot be run: .*Expand"):
        encoder.encode(["w1"])


class Endless:
    """A session whose operator does not end within the test."""

    runs = 0

    def run(self, *_: object) -> None:
        self.runs += 1
        time.sleep(3)


def test_a_graph_that_takes_too_long_is_not_tried_again(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_model, "SECONDS", 0.05)
    encoder = load_encoder(sound, light=True)
    assert isinstance(encoder, OnnxEncoder)
    encoder.session = session = Endless()
    for _ in range(2):
        with pytest.raises(InputError, match="seconds for a batch"):
            encoder.encode(["w1"])
    assert session.runs == 1


def test_verify_and_search_name_a_hostile_graph(sound: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    create(index, encoder=sound)
    with Engine.open(index) as engine:
        engine.add([Document("a", "w1 w2")])
    path = export_own(index)
    linker("index", "verify", index)
    model = onnx.load(path, load_external_data=False)
    loop(model)
    replace(index, str(path.relative_to(index)), model.SerializeToString())
    assert storage.damage(index, manifests.load(index)) == []
    assert "'Loop'" in linker("index", "verify", index, check=1).stdout
    assert "'Loop'" in linker("search", index, "--text", "w1", "--mode", "dense", check=1).stderr
    assert graph_damage(index, None) == []
    with pytest.raises(BackendUnavailableError, match="Loop"):
        OwnEncoder().embed(index, manifests.load(index).encoder, ["w1"])
