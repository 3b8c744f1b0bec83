"""`linker link` for two collections in one language: files and indexes, known links, tables, and refusals."""

import csv
import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import linker as package
from indexes.interface import Document
from indexes.store.records import EncoderRecord, Manifest
from indexes.text.parameters import BIGRAMS, STEMMED
from indexes.writer import Writer
from linker.base.errors import InputError
from linker.cli.commands.arguments import known_links
from linker.corpora import Columns
from linker.corpora.languages import CODES, guess_language, script_language
from linker.crosslingual.sides import Side, analysis_of, same_language
from linker.crosslingual.together import candidate_lists
from linker.engine.engine import Engine
from tests.helpers import linker

WORDS = [
    f"{a}{b}{c}"
    for a in ("bo", "ka", "mi", "tu")
    for b in ("len", "dar", "vis", "rom")
    for c in ("a", "e", "i", "os")
]
POSTS = 60


def texts(seed: int, length: int = 12) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[WORDS[int(i)] for i in rng.integers(0, len(WORDS), length)] for _ in range(POSTS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 articles, and for each a post with some of its words; p59's article has a near copy."""
    folder = tmp_path_factory.mktemp("together")
    articles = texts(0)
    posts = [[*article[:5], *other[:3]] for article, other in zip(articles, texts(1), strict=True)]
    write(folder / "posts.jsonl", [{"id": f"p{i}", "text": " ".join(p)} for i, p in enumerate(posts)])
    records = [{"id": f"a{i}", "title": f"Article {i}", "text": " ".join(a)} for i, a in enumerate(articles)]
    write(
        folder / "articles.jsonl", [*records, {"id": "copy", "text": f"Article 59 {' '.join(articles[59])}"}]
    )
    linker("index", "build", folder / "articles.jsonl", "--out", folder / "news.index")
    (folder / "known.csv").write_text("post,article\n" + "".join(f"p{i},a{i}\n" for i in range(20)))
    (folder / "more.qrels").write_text("".join(f"p{i} 0 a{i} 1\n" for i in range(20, 45)))
    return folder


def write(path: Path, records: Sequence[object]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_auto_is_the_default_and_files_and_indexes_give_the_same_links(folder: Path, tmp_path: Path) -> None:
    done = linker("link", folder / "posts.jsonl", folder / "articles.jsonl", "--out", tmp_path / "files.run")
    assert re.search(r"competition for documents: none; \d+% of the texts seem to have one", done.stderr)
    links = package.link(folder / "posts.jsonl", folder / "news.index", out=tmp_path / "index.run")
    assert (tmp_path / "files.run").read_text() == (tmp_path / "index.run").read_text()
    first = [next(iter(of)) for of in links.run.values()]
    assert np.mean([one[1:] == two[1:] for one, two in zip(links.run, first, strict=True)]) > 0.8
    for id_, of in links.run.items():
        scores = list(of.values())
        assert scores == sorted(scores, reverse=True) and 0 <= sum(scores) + links.none[id_] <= 1.001
    assert json.loads((tmp_path / "index.run.json").read_text())["competition"] == "none"


def test_one_to_one_ranks_each_document_first_once_and_an_index_may_be_the_source(folder: Path) -> None:
    links = package.link(folder / "news.index", folder / "posts.jsonl", links="one-to-one", k=1)
    assert links.run["a7"].keys() == {"p7"} and links.targets == POSTS
    links = package.link(folder / "posts.jsonl", folder / "news.index", links="one-to-one")
    first = [next(iter(of)) for of in links.run.values()]
    assert len(set(first)) == len(first) and links.metadata["competition"] == "one-to-one"


class Meaning:
    """An encoder that knows that a boat and a ship are the same."""

    dim, fingerprint = 2, "meaning".ljust(64, "0")

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False
    ) -> npt.NDArray[np.float32]:
        return np.array([[1, 0] if {"boat", "ship"} & set(t.split()) else [0, 1] for t in texts], np.float32)


def test_vectors_decide_between_texts_of_equal_words_without_any_link(tmp_path: Path) -> None:
    documents = [Document("a0", "gale tree"), Document("a1", "gale ship"), Document("a2", "calm hill")]
    encoder, first = Meaning(), list[str]()
    record = EncoderRecord("meaning", encoder.fingerprint, encoder.dim)
    for name, manifest in {
        "words": Manifest(positions=True),
        "meaning": Manifest(vectors="flat", positions=True, encoder=record),
    }.items():
        with Writer.create(tmp_path / name, manifest) as writer:
            writer.add(documents, encoder.encode([d.text for d in documents]) if manifest.encoder else None)
            writer.commit()
        source = Side((tmp_path / "posts",), {"p": Document("p", "gale boat")}, "en")
        with Engine(tmp_path / name, encoder=encoder if manifest.encoder else None) as engine:
            lists, _, _ = candidate_lists(engine, source, ["p"], [], 0)
            first.append(engine.collection.rows.ids[lists.documents[0, lists.scores[0].argmax()]])
    assert first == ["a0", "a1"]


def test_known_links_are_taken_and_get_no_line(folder: Path) -> None:
    links = package.link(
        folder / "posts.jsonl", folder / "news.index", train=[folder / "known.csv", folder / "more.qrels"]
    )
    assert links.run.keys() == {f"p{i}" for i in range(45, POSTS)} and links.metadata["links"] == 45
    assert set(links.metadata["competition_leads"]) == {"soft", "one-to-one"}
    taken = package.link(
        folder / "posts.jsonl", folder / "news.index", train=folder / "known.csv", links="one-to-one", k=30
    )
    known = {f"a{i}" for i in range(20)}
    assert max(p for of in taken.run.values() for id_, p in of.items() if id_ in known) < 1e-6


@pytest.mark.parametrize("train", [[], ["known.csv"], ["known.csv", "more.qrels"]])
def test_the_fewer_texts_are_expected_to_have_a_document_the_less_probable_is_each_link(
    folder: Path, train: list[str]
) -> None:
    few, most = (
        package.link(
            folder / "posts.jsonl", folder / "news.index", train=[folder / name for name in train],
            expected_linked=share,
        )
        for share in (0.1, 0.9)
    )  # fmt: skip
    assert few.none.keys() == most.none.keys() and all(few.none[id_] > most.none[id_] for id_ in few.none)
    assert few.metadata["linked_share"] == {"expected": 0.1}


def test_more_texts_of_which_nothing_is_known_more_is_known_of_share(folder: Path, tmp_path: Path) -> None:
    """Half of single texts have a document, so far as is known; of several, the share is estimated."""
    posts = [json.loads(line) for line in (folder / "posts.jsonl").read_text().splitlines()]
    found = []
    for name, some in {"one": posts[:1], "few": posts[:5]}.items():
        write(tmp_path / f"{name}.jsonl", some)
        found += [
            package.link(tmp_path / f"{name}.jsonl", folder / "news.index", expected_linked=share)
            for share in (None, 0.5)
        ]
    one, one_of_two, few, half = found
    assert one.none == pytest.approx(one_of_two.none, abs=1e-6)
    every = package.link(folder / "posts.jsonl", folder / "news.index")
    shares = [each.metadata["linked_share"]["estimated"] for each in (one, few, every)]
    assert 0.5 < shares[0] < shares[1] < shares[2] < 1
    assert {id_: [*of] for id_, of in few.run.items()} == {id_: [*every.run[id_]] for id_ in few.run}
    assert all(half.none[id_] > few.none[id_] > every.none[id_] for id_ in few.none)


def test_among_few_documents_obvious_matches_are_linked_and_other_texts_are_not(tmp_path: Path) -> None:
    checks = [
        "Nein, es gibt keine neue Impfpflicht",
        "Ja, die Donau stand in Passau bei 9,80 Metern",
        "Heizungsgesetz: Was der Bundestag beschlossen hat",
        "Bahnstreik der GDL: Was Reisende wissen müssen",
        "Strompreise: Der Verband rechnet mit 12 Prozent",
        "Kein Haiangriff an der Ostsee",
    ]
    posts = [
        "Ministerium: Es gibt keine neue Impfpflicht",
        "Passau meldet Hochwasser, die Donau steht bei 9,80 Metern",
        "Heizungsgesetz im Bundestag beschlossen",
        "GDL ruft zum Bahnstreik auf, Reisende müssen warten",
        "Strompreise steigen um 12 Prozent, sagt der Verband",
        "Haiangriff an der Ostsee?",
        "Meine Katze schläft den ganzen Tag",
        "Bayern gewinnt 3:1 gegen Dortmund",
        "Wetter: Morgen Sonne im Süden",
        "Wer hat heute Abend Zeit für ein Bier?",
        "Neues Album der Band erscheint im Mai",
        "Rezept für Apfelkuchen mit Zimt",
    ]
    for name, lines in {"checks": checks, "posts": posts}.items():
        write(tmp_path / f"{name}.jsonl", [{"id": f"{i}", "text": text} for i, text in enumerate(lines)])
    found = package.link(tmp_path / "posts.jsonl", tmp_path / "checks.jsonl", min_probability=0.5)
    assert {one: next(iter(of)) for one, of in found.run.items()} == {f"{i}": f"{i}" for i in range(6)}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_table_holds_both_texts_ranks_and_copies(folder: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"pairs{suffix}"
    said = linker("link", folder / "posts.jsonl", folder / "news.index", "--out", out, "-k", "2").stderr
    links = package.link(folder / "posts.jsonl", folder / "news.index", k=2)
    probable = sum(next(iter(of.values())) >= 0.5 for of in links.run.values())
    assert (
        f"{probable} of {POSTS} texts linked with P(link) ≥ 0.5, {POSTS} with any, each to at most 2" in said
    )
    assert probable < POSTS and "language und" not in said
    if suffix == ".csv":
        with out.open(newline="", encoding="utf-8-sig") as file:
            rows = [dict(row) for row in csv.DictReader(file)]
    else:
        read = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        rows = [
            r | {"rank": str(r["metadata"]["rank"]), "copies": r["metadata"].get("copies", "")} for r in read
        ]
    assert len(rows) == 2 * POSTS and [r["rank"] for r in rows[:2]] == ["1", "2"]
    last = next(r for r in rows if r["seed"] == "p59" and r["rank"] == "1")
    assert {last["id"], last["copies"]} == {"a59", "copy"}
    assert last["verdict"] == "" and float(last["probability"]) > 0
    assert all(float(r["probability"]) == round(links.run[r["seed"]][r["id"]], 6) for r in rows)
    told = {*last, *last.get("metadata", ()), *last.get("seed_metadata", ())}
    assert not told & {"seed_language", "language"}


def test_judged_tables_come_back_as_known_links(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "judged.csv"
    table.write_text("seed,id,verdict\np1,a1,relevant\np2,a9,not\np3,a3,\np4,a4,yes\n")
    sides = ({f"p{i}": 0 for i in range(9)}, {f"a{i}": 0 for i in range(9)})
    assert known_links([table], *sides) == [("p1", "a1"), ("p4", "a4")]
    (tmp_path / "none.csv").write_text("post,article\nx,y\n")
    with pytest.raises(InputError, match="do the ids agree"):
        known_links([tmp_path / "none.csv"], *sides)


def test_reasons_lie_beside_the_run(folder: Path, tmp_path: Path) -> None:
    linker("link", folder / "posts.jsonl", folder / "news.index", "--out", tmp_path / "r", "--explain")
    lines = [json.loads(line) for line in (tmp_path / "r.explain.jsonl").read_text().splitlines()]
    first = next(line for line in lines if line["id"] == "p7")
    assert first["link"] == "a7" and first["matches"] and first["probability"] > first["no_link_probability"]
    package.link(
        folder / "posts.jsonl", folder / "news.index", out=tmp_path / "r", explain=True, min_probability=1
    )
    lines = [json.loads(line) for line in (tmp_path / "r.explain.jsonl").read_text().splitlines()]
    unlinked = next(line for line in lines if line["id"] == "p7")
    assert unlinked == first | {"link": None, "candidate": "a7"}


def test_options_of_two_languages_are_named(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    sides = folder / "posts.jsonl", folder / "articles.jsonl"
    package.link(*sides, languages="en-en", save_model=folder / "model", self_train=False)
    assert "both collections are in one language; because of `save_model`" in caplog.text


def test_options_of_languages_are_named(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    package.link(folder / "posts.jsonl", folder / "news.index", ngrams=3, layout=False, expected_linked=0.5)
    assert "have no effect: `ngrams`, `layout`\n" in caplog.text


def test_unjudged_pairs_are_named(folder: Path, tmp_path: Path) -> None:
    posts, news, pairs = folder / "posts.jsonl", folder / "news.index", tmp_path / "pairs.csv"
    pairs.write_text("seed,id,verdict\np1,a1,\np2,a2,\n")
    for command in (("link", posts, news), ("group", posts)):
        refusal = linker(*command, "--out", tmp_path / "out.csv", "--train", pairs, check=1).stderr
        assert "pairs.csv: no pair in it is judged" in refusal


def test_a_named_column_that_no_file_has_is_refused(folder: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("Nr,Beitrag\n1,kerosene lamp\n2,lanthanum ore\n")
    other.write_text("id,text\na,kerosene\nb,lanthanum\n")
    for command in (("link", one, other), ("link", one, folder / "news.index"), ("group", one, other)):
        done = (*command, "--out", tmp_path / "out.csv", "--text-column")
        assert "one.csv: no column Post" in linker(*done, "Post", check=1).stderr
        linker(*done, "Beitrag")


@pytest.mark.parametrize("command", ["link", "group"])
def test_a_repeated_id_is_left_out_as_when_an_index_is_built(
    folder: Path, tmp_path: Path, command: str
) -> None:
    posts = tmp_path / "twice.csv"
    posts.write_text("id,text\np1,kerosene\np1,lanthanum\np2,kerosene\n")
    others = [folder / "news.index"] if command == "link" else []
    log = linker(command, posts, *others, "--out", tmp_path / "out.csv").stderr
    assert "1 unusable entry left out; the first is line 3: duplicate id 'p1': the first one was kept" in log
    assert "lanthanum" not in (tmp_path / "out.csv").read_text()
    linker("index", "build", posts, "--out", tmp_path / "i")
    (quarantined,) = (json.loads(p.read_text()) for p in (tmp_path / "i" / "quarantine").glob("*.jsonl"))
    assert (quarantined["line"], quarantined["reason"]) == (3, "duplicate id 'p1': the first one was kept")


def test_what_cannot_be_done_is_refused(folder: Path, tmp_path: Path) -> None:
    base = ("link", folder / "posts.jsonl", folder / "news.index", "--out", tmp_path / "r")
    assert "choose one-to-one or many-to-one" in linker(*base, "--links", "one-to-many", check=1).stderr
    assert "at least 40" in linker(*base, "--precision", "0.9", check=1).stderr
    every = tmp_path / "every"
    every.write_text("".join(f"p{i} 0 a{i} 1\n" for i in range(POSTS)))
    assert "cover every text" in linker(*base, "--train", every, check=1).stderr
    pairs = ("link", folder / "posts.jsonl", folder / "news.index", "--out", tmp_path / "p.csv", "--explain")
    assert "next to a run" in linker(*pairs, check=1).stderr


def test_tables_with_other_headers_are_read_by_options_of_index_build(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text(
        "line,wording\n" + "".join(f"{i},{' '.join(t)}\n" for i, t in enumerate(texts(0)))
    )
    base = ("link", tmp_path / "posts.csv", folder / "articles.jsonl", "--out", tmp_path / "r")
    assert "id from 'line', text from 'wording'" in linker(*base).stderr
    linker(*base, "--id-column", "line", "--text-column", "wording")
    assert (tmp_path / "r").read_text().startswith("0 Q0 a0 1 ")


def test_the_pivots_table_is_read_like_those_of_the_sides(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text(
            f"no,message\n{name}1,kerosene {name}x\n{name}2,lanthanum {name}y\n"
        )
    (tmp_path / "links").write_text("c1 0 b1 1\nc2 0 b2 1\n")
    links = package.link(
        tmp_path / "a.csv", tmp_path / "b.csv", "pivot", pivot=tmp_path / "c.csv", pivot_links=tmp_path / "links",
        languages="xx-yy", columns=Columns(id="no", text="message"),
    )  # fmt: skip
    assert [next(iter(of)) for of in links.run.values()] == ["b1", "b2"]


def side(*lines: str, code: str = "und") -> Side:
    return Side((), {str(i): Document(str(i), line) for i, line in enumerate(lines)}, code)


def test_languages_are_told_by_codes_scripts_or_function_words() -> None:
    english = side("the cat sat on the mat and it was the end of the day", "a dog is in the house of the man")
    other = side("it is the day of the dog and a man", "the house was on the end")
    french = side("le chat est sur la table et la maison est dans la ville", "un chien de la rue")
    assert same_language(english, other) and not same_language(english, french)
    assert not same_language(side("x", code="fr"), side("x", code="en"))
    assert same_language(side("x", code="en"), side("y", code="en"))
    assert analysis_of(english, other) == "english" and analysis_of(french, french) == "french"
    assert analysis_of(side("x", code="de"), side("y")) == "german"
    assert analysis_of(side("猫がマットの上に座った"), side("犬は家にいる")) == "japanese"
    assert analysis_of(side("qwx zzk"), side("qwx zzk")) == "none"
    assert not same_language(side("привет"), side("hello"))  # a few words only reveal their script


def test_words_of_code_do_not_make_two_languages_of_one_script(caplog: pytest.LogCaptureFixture) -> None:
    one = side(
        "用法: ls [选项] 列出目录内容, 默认为当前目录 in is the for", "复制文件到目录 of the in is that"
    )
    other = side(
        "用法: rm [选项] 删除目录内容, 默认为当前文件 de la le les", "移动文件到目录 et est dans la une"
    )
    assert same_language(one, other) and not caplog.records


SAMPLES = {
    "ar": ("امرأة تقطع البصل", "الرجل يعزف على الجيتار", "طفل يركض في الحديقة", "القطة تنام على الأريكة"),
    "de": ("Eine Frau schneidet Zwiebeln.", "Der Mann spielt Gitarre auf der Bühne.", "Ein Kind läuft durch den Park.",
           "Die Katze ist müde und schläft auf dem Sofa."),
    "en": ("A woman is slicing onions.", "The man is playing the guitar on stage.", "A child runs through the park.",
           "The cat is tired and sleeps on the sofa."),
    "fr": ("Une femme coupe des oignons.", "L'homme joue de la guitare sur la scène.", "Un enfant court dans le parc.",
           "Le chat est fatigué et dort sur le canapé."),
    "ru": ("Женщина режет лук.", "Мужчина играет на гитаре.", "Ребёнок бежит по парку.", "Кошка спит на диване."),
    "tr": ("Bir kadın soğan doğruyor.", "Bu adam sahnede gitar çalıyor.", "Bir çocuk parkta koşuyor ve gülüyor.",
           "Kedi çok yorgun ve kanepede bir saat uyuyor."),
    "zh": ("一个女人在切洋葱。", "男人在台上弹吉他。", "一个孩子在公园里跑。", "猫在沙发上睡觉。"),
}  # fmt: skip


def test_two_texts_a_side_tell_the_shared_languages_apart(caplog: pytest.LogCaptureFixture) -> None:
    for one, other in itertools.product(SAMPLES, SAMPLES):
        caplog.clear()
        same = same_language(side(*SAMPLES[one][:2]), side(*SAMPLES[other][2:]))
        assert same == (one == other) and (not caplog.records or one == other), (one, other)


def test_one_language_is_assumed_with_a_warning_unless_words_differ(caplog: pytest.LogCaptureFixture) -> None:
    assert same_language(side("kerosene lanthanum"), side("helium argon"))
    assert "one language is assumed" in caplog.text
    caplog.clear()
    invented, others = (
        side(*[" ".join(name + word for word in line) for line in texts(seed)])
        for seed, name in enumerate("qz")
    )
    assert same_language(invented, invented) and not same_language(invented, others)
    assert not caplog.records


def test_languages_are_guessed_by_script_then_by_common_words_of_which_one_decides_nothing() -> None:
    assert {*CODES} == {*STEMMED, *BIGRAMS}
    for text, language in (
        ("猫がマットの上に座った", "japanese"),
        ("用法: ls [选项] 列出目录内容, 默认为当前目录", "chinese"),
        ("고양이가 매트 위에 앉았다", "korean"),
        ("это не то, что было на столе", "russian"),
        ("the α and the β of the γ rays are not of it", "english"),
        ("der Hund und die Katze sind nicht in dem Haus", "german"),
    ):
        assert guess_language([text]) == language
    assert script_language("λόγος and κόσμος") == "greek" and script_language("12, 34!") == ""
    assert guess_language([]) is None
    posts = [
        "Two die in crash near Leeds", "Three hikers die in storm", "Heroes never quit",
        "Markets rally after bank report",
    ]  # fmt: skip
    assert guess_language(posts) is None
    assert guess_language([*posts, "It was the end of the road for them"]) == "english"
    assert guess_language([*posts, "Der Hund und die Katze sind nicht mit auf dem Bild"]) == "german"


def test_words_in_addresses_are_of_no_language() -> None:
    """The words "com", "no" and "do" are among the most frequent of Portuguese."""
    addresses = "https://t.co/no pic.twitter.com/do www.example.com/no?do"
    assert guess_language([f"One way to go {addresses}"]) is None
    assert guess_language([f"It was the end of the road {addresses}"]) == "english"
    assert guess_language(["O cão não vai com o gato do vizinho para casa."]) == "portuguese"


def test_the_deprecated_spelling_does_the_same_in_one_language_and_in_two(
    folder: Path, tmp_path: Path
) -> None:
    base = ("link", folder / "posts.jsonl", folder / "news.index", "--languages")
    words = ("--method", "dictionary", "--train", folder / "known.csv")
    for number, more in enumerate((("en-en",), ("en-fr", *words))):
        runs = [tmp_path / f"{name}-{number}" for name in ("links", "flag")]
        linker(*base, *more, "--links", "one-to-one", "--out", runs[0])
        linker(*base, *more, "--one-to-one", "--out", runs[1])
        for suffix in ("", ".json"):
            first, second = (run.with_name(run.name + suffix).read_text() for run in runs)
            assert first == second
    clash = linker(*base, "en-en", "--one-to-one", "--links", "many-to-one", "--out", tmp_path / "r", check=1)
    assert "--one-to-one contradicts --links many-to-one" in clash.stderr
