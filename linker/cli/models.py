"""`linker train`, `linker plot`, `linker encode` and `linker export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from indexes.errors import importing
from linker.base.files import path_text
from linker.base.terminal import AsJson, note, print_json, print_result
from linker.cli import completion
from linker.engine.options import EncoderCompiled, EncoderPrecision

Config = Annotated[
    Path | None,
    typer.Argument(
        metavar="CONFIG.toml|NAME",
        help="Training configuration: a file, or a ready one (ast, ast-paper, cnn, gru, bigru, bag, distil).",
        show_default=False,
        autocompletion=completion.configurations,
    ),
]


def train(
    config: Config = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Override a key, e.g. training.lr=0.001.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Override output.path.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint.")] = False,
    plots: Annotated[
        bool,
        typer.Option(
            "--plots/--no-plots", help="Plot the training into MODEL/training, as `linker plot` does."
        ),
    ] = True,
    show: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Print this ready configuration and exit.",
            show_default=False,
            autocompletion=completion.configurations,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train an encoder from a TOML configuration. The ready configurations are applied to your data.

    Example: linker train ast --out model
    """
    from linker.training import ready

    if show is not None:
        print(ready.text_of(show), end="")
        return
    if config is None:
        raise typer.BadParameter(f"name a CONFIG.toml or a ready configuration: {', '.join(ready.names())}")
    from linker.cli.commands.training import is_first
    from linker.cli.commands.training import train as run

    model = run(config, out, overrides=overrides or (), resume=resume, plots=plots)
    if not is_first():
        return
    print_result({"model": path_text(model)}, model, as_json)


def plot(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A folder that `linker train` wrote.", show_default=False),
    ],
    documents: Annotated[
        Path | None,
        typer.Option(metavar="CORPUS", help="Also plot a map of these documents.", show_default=False),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="POSTS", help="Also plot a map of these posts (with --qrels).", show_default=False
        ),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(
            metavar="QRELS", help="Links that colour the map of posts by article.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for the plots. Default: MODEL/training.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
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
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Name or path of an encoder.",
            show_default=False,
            autocompletion=completion.encoders,
        ),
    ],
    texts: Annotated[Path, typer.Argument(metavar="TEXTS", help="Corpus to encode.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE.npy", help="Write the float32 matrix [n, dim] here.", show_default=False),
    ],
    batch_size: Annotated[int, typer.Option(min=1, help="Texts encoded per batch.")] = 64,
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
            f"{bad.path}:{bad.line}: {bad.reason}: correct the line, so that rows and lines agree"
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
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|DIR", help="A folder that `linker train` wrote, or an index.", show_default=False
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Export an encoder, to encode queries without PyTorch.

    The graph goes to MODEL/model.onnx, for ONNX Runtime (extra onnx). After further training, export again.

    Example: linker export model
    """
    from indexes.store import manifest as manifests

    note("loading PyTorch")  # which takes seconds
    with importing("exporting an encoder", "train"):
        from linker.encoders.onnx_export import export as run
    from linker.encoders.opened import export_own

    graph = export_own(model) if (model / manifests.NAME).exists() else run(model)
    print_result({"graph": path_text(graph)}, graph, as_json)
