"""`linker train` and `linker encode`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from indexes.errors import MissingExtraError
from linker.cli.common import AsJson, note, print_json

Config = Annotated[
    Path, typer.Argument(metavar="CONFIG.toml", help="What to train, on what, how.", show_default=False)
]


def train(
    config: Config,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Override a key, e.g. training.lr=0.001.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Override output.path.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train an encoder as a TOML file says."""
    from linker.config import load

    try:
        from linker.training.config import TrainConfig
        from linker.training.run import run
    except ModuleNotFoundError as e:
        raise MissingExtraError(f"training ({e.name} is missing)", "train") from None

    settings = [*(overrides or []), *([f'output.path="{out}"'] if out else [])]
    model = run(load(config, TrainConfig, settings), resume=resume)
    if as_json:
        print_json({"model": str(model)})
    else:
        print(model)


def encode(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Encoder by name or path.", show_default=False)
    ],
    texts: Annotated[
        Path, typer.Argument(metavar="TEXTS", help="A corpus, in its order.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE.npy", help="Matrix [n, dim], float32.", show_default=False)
    ],
    batch_size: Annotated[int, typer.Option(min=1, help="Texts encoded at once.")] = 64,
) -> None:
    """Encode a corpus into a matrix, one row a document; the ids go to FILE.npy.ids.txt, a line each."""
    import io

    import numpy as np

    from indexes.interface import Document
    from linker.corpora import read_corpus
    from linker.encoders import load_encoder
    from linker.errors import InputError
    from linker.files import write_atomically

    records = list(read_corpus(texts))
    documents = [r for r in records if isinstance(r, Document)]
    if len(documents) < len(records):
        bad = next(r for r in records if not isinstance(r, Document))
        raise InputError(f"{bad.path}:{bad.line}: {bad.reason}: mend the line, so that rows and lines agree")
    vectors = load_encoder(model).encode(
        [d.full_text for d in documents], batch_size=batch_size, progress=True
    )
    buffer = io.BytesIO()
    np.save(buffer, vectors, allow_pickle=False)
    write_atomically(out, buffer.getvalue())
    write_atomically(out.with_name(out.name + ".ids.txt"), "".join(f"{d.id}\n" for d in documents).encode())
    note(f"{out}: {len(documents)} vectors of dimension {vectors.shape[1]}")
