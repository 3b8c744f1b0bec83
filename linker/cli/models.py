"""`linker train`, `linker plot`, `linker encode` and `linker export`."""

from pathlib import Path
from typing import Annotated

import typer

from indexes.errors import importing
from linker.base.files import path_text
from linker.base.options import Opt
from linker.base.terminal import AsJson, note, print_json, print_result
from linker.engine.options import EncoderCompiled, EncoderPrecision

Config = Annotated[Path | None, Opt(
    "Training configuration: a file, or a built-in one (ast, ast-paper, cnn, gru, bigru, bag, distil).",
    "", metavar="CONFIG.toml|NAME", complete="configurations")]  # fmt: skip


def train(
    config: Config = None,
    overrides: Annotated[list[str] | None, Opt(
        "Override a key, e.g. training.lr=0.001.", "--set", metavar="KEY=VALUE")] = None,
    out: Annotated[Path | None, Opt("Override output.path.", metavar="MODEL")] = None,
    resume: Annotated[bool, Opt("Continue from the last checkpoint.", "--resume")] = False,
    plots: Annotated[bool, Opt(
        "Plot the training into MODEL/training, as `linker plot` does.", "--plots/--no-plots")] = True,
    show: Annotated[str | None, Opt(
        "Print this built-in configuration and exit.", metavar="NAME", complete="configurations")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Train an encoder from a TOML configuration. The built-in configurations are applied to your data.

    Example: linker train ast --out model
    """
    from linker.training import ready

    if show is not None:
        print(ready.text_of(show), end="")
        return
    if config is None:
        raise typer.BadParameter(
            f"name a CONFIG.toml or a built-in configuration: {', '.join(ready.names())}"
        )
    from linker.cli.commands.training import is_first
    from linker.cli.commands.training import train as run

    model = run(config, out, overrides=overrides or (), resume=resume, plots=plots)
    if not is_first():
        return
    print_result({"model": path_text(model)}, model, as_json)


def plot(
    model: Annotated[Path, Opt("A folder that `linker train` wrote.", "", metavar="MODEL")],
    documents: Annotated[Path | None, Opt("Also plot a map of these documents.", metavar="CORPUS")] = None,
    queries: Annotated[Path | None, Opt(
        "Also plot a map of these posts (with --qrels).", metavar="POSTS")] = None,
    qrels: Annotated[Path | None, Opt(
        "Links that colour the map of posts by article.", metavar="QRELS")] = None,
    out: Annotated[Path | None, Opt("Folder for the plots. Default: MODEL/training.", metavar="DIR")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Plot a training run as SVG.

    The plots show loss, dev figures, each head's α and exact zeros, and t-SNE maps of documents and of posts.

    Example: linker plot model --out plots
    """
    from linker.cli.commands.training import draw

    drawn = draw(model, documents, out, queries=queries, qrels=qrels)
    if as_json:
        print_json({"plots": [path_text(path) for path in drawn]})
        return
    for path in drawn:
        print(path)


def encode(
    model: Annotated[str, Opt("Name or path of an encoder.", "", metavar="MODEL", complete="encoders")],
    texts: Annotated[Path, Opt("Corpus to encode.", "", metavar="TEXTS")],
    out: Annotated[Path, Opt("Write the float32 matrix [n, dim] here.", metavar="FILE.npy")],
    batch_size: Annotated[int, Opt("Texts encoded per batch.", low=1)] = 64,
    precision: EncoderPrecision = "float32",
    compiled: EncoderCompiled = False,
    as_json: AsJson = False,
) -> None:
    """Encode a corpus into a matrix.

    The matrix has one row per document; the ids go to FILE.npy.ids.txt, one per line.

    Example: linker encode minilm texts.jsonl --out texts.npy
    """
    import io

    import numpy as np

    from indexes.interface import Document
    from linker.base.errors import InputError
    from linker.base.files import write_atomically
    from linker.corpora import read_corpus
    from linker.encoders.loading import load_encoder

    records = list(read_corpus(texts))
    documents = [r for r in records if isinstance(r, Document)]
    if len(documents) < len(records):
        bad = next(r for r in records if not isinstance(r, Document))
        raise InputError(
            f"{bad.path}:{bad.line}: {bad.reason}: correct the line, since every record must have a row"
        )
    encoder = load_encoder(model, precision=precision, compiled=compiled, gpu=True)
    vectors = encoder.encode([d.full_text for d in documents], batch_size=batch_size, progress=True)
    buffer = io.BytesIO()
    np.save(buffer, vectors, allow_pickle=False)
    write_atomically(out, buffer.getvalue())
    write_atomically(out.with_name(out.name + ".ids.txt"), "".join(f"{d.id}\n" for d in documents).encode())
    if as_json:
        print_json({"vectors": path_text(out), "documents": len(documents), "dim": vectors.shape[1]})
    note(f"{out}: {len(documents)} vectors of dimension {vectors.shape[1]}")


def export(
    model: Annotated[Path, Opt("A folder that `linker train` wrote, or an index.", "", metavar="MODEL|DIR")],
    as_json: AsJson = False,
) -> None:
    """Export an encoder, to encode queries without PyTorch.

    The graph goes to MODEL/model.onnx, for ONNX Runtime (extra onnx). After further training, export again.

    Example: linker export model
    """
    from indexes.store import manifest as manifests

    note("loading PyTorch")  # loading it takes seconds
    with importing("exporting an encoder", "train"):
        from linker.encoders.onnx_export import export as run
    from linker.encoders.opened import export_own

    graph = export_own(model) if (model / manifests.NAME).exists() else run(model)
    print_result({"graph": path_text(graph)}, graph, as_json)
