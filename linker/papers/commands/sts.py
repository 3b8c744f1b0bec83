"""`linker sts`: train, apply and evaluate sentence-pair scorers."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from linker.base.files import check_outputs, path_text
from linker.base.options import Opt
from linker.base.printable import print_for_programs
from linker.base.terminal import AsJson, note, print_json

MEASURES = ("spearman", "pearson", "mse", "spearman_argmax", "pearson_argmax", "mse_argmax", "accuracy")
Files = Annotated[list[Path], Opt("JSONL or TSV: text1, text2, score.", "", metavar="PAIRS...")]
Model = Annotated[Path, Opt("A folder that `sts train` wrote.", "", metavar="MODEL")]
Top = Annotated[float, Opt("Highest possible score in the files; 1 for binary labels.")]
Batch = Annotated[int, Opt("Pairs scored per batch.", low=1)]


def train(
    files: Files,
    out: Annotated[Path | None, Opt("Folder of the new model.", metavar="MODEL")] = None,
    backbone: Annotated[
        str,
        Opt(
            "A transformers model; for the preset frozen, an encoder; for mixed, one encoder or several (A,B).",
            metavar="NAME|PATH",
        ),
    ] = "minilm",
    preset: Annotated[
        Literal["recommended", "paper", "frozen", "mixed"], Opt("Settings to start from.")
    ] = "recommended",
    overrides: Annotated[
        list[str] | None, Opt("Override a setting, e.g. epochs=3.", "--set", metavar="KEY=VALUE")
    ] = None,
    dev: Annotated[Path | None, Opt("Keep the epoch that is best on these pairs.", metavar="PAIRS")] = None,
    dev_share: Annotated[
        float, Opt("Without --dev: share of the pairs held out for it, by item.", low=0, high=0.5)
    ] = 0.1,
    init: Annotated[
        Path | None, Opt("Start from this model instead of the backbone.", metavar="MODEL")
    ] = None,
    folds: Annotated[int, Opt("Cross-validate each file separately, in this many folds.", low=0)] = 0,
    augment: Annotated[
        str | None,
        Opt(
            "Add back-translations: m2m100, a model, FILE.jsonl or FILE.tsv of translations, or "
            "'command:apertium -u {source}-{target}'.",
            metavar="TRANSLATOR",
        ),
    ] = None,
    language: Annotated[str, Opt("Language of the pairs, as the translator names it.")] = "en",
    via: Annotated[str, Opt("The language to translate to and back from.")] = "fr",
    top: Top = 5.0,
    as_json: AsJson = False,
) -> None:
    """Train a sentence-pair scorer on graded pairs.

    It is a Cross-BERT-GRU, or the head of the frozen-feature variant.

    Example: linker sts train pairs.jsonl --out model
    """
    if (out is None) == (folds == 0) or folds == 1:
        raise typer.BadParameter("give --out for a model, or --folds (2 or more) for a cross-validation")
    from linker.scoring.pairs.sts import recipe as sts

    config = sts.configure(preset, overrides or [])
    recipe = sts.Recipe(config, backbone, init, augment, language, via)
    resources = {path: sts.read_pairs(path, top=top) for path in files}
    if folds:
        rows = {
            path_text(path): sts.cross_validate(recipe, pairs, folds, note)
            for path, pairs in resources.items()
        }
        _print_rows(rows, as_json)
        return
    assert out is not None
    pairs = [pair for file_pairs in resources.values() for pair in file_pairs]
    if dev:
        held = sts.read_pairs(dev, top=top)
    else:
        pairs, held = sts.split_dev(pairs, dev_share, config.seed)
    report = sts.train_and_save(recipe, pairs, held, out, note)
    if as_json:
        print_json({"model": path_text(out), "pairs": len(pairs), "kept": report.kept, "dev": report.dev})
    else:
        print(out)


def predict(
    model: Model,
    files: Files,
    out: Annotated[Path | None, Opt("Write here instead of to stdout.", metavar="FILE")] = None,
    batch_size: Batch = 32,
    as_json: AsJson = False,
) -> None:
    """Score sentence pairs, one JSON line each.

    A line has id, score (expected value, 0 to 1), grade (most likely / 5) and probabilities.

    Example: linker sts predict model pairs.jsonl
    """
    from linker.scoring.pairs.sts import recipe as sts

    check_outputs({"--out": out}, files)
    scorer = sts.load(model)
    lines = [
        line
        for path in files
        for line in sts.prediction_lines(scorer, sts.read_pairs(path, graded=False), batch_size)
    ]
    if out is None:
        print_for_programs("".join(lines))
        return
    from linker.base.files import write_atomically

    write_atomically(out, "".join(lines).encode())
    if as_json:
        print_json({"predictions": path_text(out), "pairs": len(lines)})
    note(f"{out}: {len(lines)} pairs")


def evaluate(
    model: Model, files: Files, top: Top = 5.0, batch_size: Batch = 32, as_json: AsJson = False
) -> None:
    """Evaluate a scorer on graded pairs.

    Prints Spearman, Pearson and MSE on score/5 and the accuracy of the most likely grade, for each file separately.

    Example: linker sts evaluate model pairs.jsonl
    """
    from linker.scoring.pairs.sts import recipe as sts

    scorer = sts.load(model)
    rows = {}
    for path in files:
        pairs = sts.read_pairs(path, top=top)
        rows[path_text(path)] = {"pairs": len(pairs), **sts.figures(pairs, scorer, batch_size)}
    _print_rows(rows, as_json)


def _print_rows(rows: dict[str, dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    width = max(len(name) for name in rows)
    print(f"{'':{width}}  {'pairs':>6}  " + "  ".join(f"{m:>15}" for m in MEASURES))
    for name, row in rows.items():
        figures = "  ".join(f"{row[m]:15.4f}" for m in MEASURES)
        print(f"{name:{width}}  {row['pairs']:6}  {figures}")
