"""`linker group` and `Engine.group`: tables, near copies, judged pairs, promises, explanations, and refusals."""

import csv
import datetime
import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import openpyxl
import pytest

import linker as package
from indexes.interface import Document
from linker.base.errors import InputError
from linker.cli.commands import grouping
from linker.cli.commands.grouping import draw
from linker.scoring.groups.dates import date_field
from tests.helpers import linker

WORDS = [
    a + b + c + d
    for a in ("bo", "ka", "mi", "tu")
    for b in ("len", "dar", "vis", "rom")
    for c in ("ant", "ern", "ist", "os")
    for d in ("", "in")
]
STORIES, POSTS = 30, 4


@functools.cache
def corpus(seed: int = 0) -> list[Document]:
    """30 stories of four posts that share ten of their fourteen words; the first post has a copy."""
    rng = np.random.default_rng(seed)
    documents = []
    for story in range(STORIES):
        common = [*rng.choice(WORDS, 9), f"Name{story}"]
        for post in range(POSTS):
            words = [*common, *rng.choice(WORDS, 4)]
            text = " ".join(rng.permutation(words).tolist())
            date = f"2024-01-{1 + story % 20 + 2 * post:02}"
            documents.append(Document(f"s{story:02}p{post}", text, "", {"date": date, "story": str(story)}))
    documents.append(
        Document(
            "copy", f"RT @somebody: {documents[0].text} https://example.org/x", "", {"date": "2024-01-02"}
        )
    )
    return documents


def write(path: Path, documents: Sequence[Document]) -> Path:
    records = [{"id": d.id, "text": d.text, **d.metadata} for d in documents]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("group") / "posts.jsonl", corpus())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> package.Engine:
    directory = tmp_path_factory.mktemp("group") / "index"
    package.create(directory, encoder="none", language="english", positions=True)
    opened = package.Engine.open(directory)
    opened.add(corpus())
    return opened


def partition(groups: package.Groups) -> set[frozenset[str]]:
    found: dict[int, set[str]] = {}
    for member in groups.members:
        found.setdefault(member.group, set()).add(member.id)
    return {frozenset(ids) for ids in found.values()}


def right(partition: set[frozenset[str]]) -> int:
    return sum(
        len(ids - {"copy"}) == POSTS and len({id_[:3] for id_ in ids - {"copy"}}) == 1 for ids in partition
    )


def test_every_document_is_in_one_group_and_stories_are_found(engine: package.Engine) -> None:
    groups = engine.group()
    assert [member.id for member in groups.members] == [d.id for d in corpus()]
    assert right(partition(groups)) >= 0.9 * STORIES
    assert [m.group for m in groups.members[:2]] == [1, 1]
    assert {m.id: m.near_copy_of for m in groups.members if m.near_copy_of} in (
        {"copy": "s00p0"},
        {"s00p0": "copy"},
    )
    assert {frozenset(g.ids) for g in groups.groups} == {ids for ids in partition(groups) if len(ids) > 1}
    alone = {member.id for member in groups.members if member.probability is None}
    assert alone == set().union(*(ids for ids in partition(groups) if len(ids) == 1), set())
    assert "groups" in repr(groups).lower() and "<td>" in groups._repr_html_()


POSTS_ON_EVENTS = {  # the letter is the event; e: each about something else
    "a1": "A bridge over the Elbe in Dresden collapsed early this morning, no one was hurt. Trams have stopped.",
    "a2": "Part of the Carola bridge in Dresden has fallen into the Elbe. Police have closed the river to ships.",
    "a3": "Woke up to this: the bridge in Dresden is gone! Tram rails hanging in the water",
    "a4": "Dresden bridge collapse: engineers say chloride corrosion weakened the steel of the Carola bridge",
    "c1": "Baker recalls rye bread sold in Lidl stores because of metal splinters, says the food agency",
    "c2": "Recall: rye bread from Lidl may contain metal splinters. Customers can return it without a receipt.",
    "c3": "just threw away my lidl rye bread, apparently there is metal in it??",
    "c4": "Lidl takes rye bread off the shelves in six countries after metal splinters were found",
    "d1": "Eruption on the Reykjanes peninsula: lava flows towards Grindavik, the town was evacuated overnight",
    "d2": "Iceland: Grindavik evacuated again as a volcano erupts on Reykjanes",
    "d3": "Volcanic eruption in Iceland, Blue Lagoon closed and residents of Grindavik told to leave their homes",
    "d4": "The lava has reached the road to Grindavik. Stunning pictures from Iceland.",
    "e1": "My cat has learned to open the fridge, and now there is no cheese left",
    "e2": "Does anybody know a good dentist near the old town hall?",
    "e3": "The library extends its opening hours during the exams",
    "e4": "New album by our choir: twelve songs, recorded in one take",
}


@pytest.mark.parametrize("events", ["acde", "e"])
def test_a_few_posts_are_grouped_although_no_word_can_be_rare_among_them(tmp_path: Path, events: str) -> None:
    posts = [Document(id_, text) for id_, text in POSTS_ON_EVENTS.items() if id_[0] in events]
    found = partition(package.group(write(tmp_path / "posts.jsonl", posts)))
    assert all(len({id_[0] for id_ in ids}) == 1 for ids in found), "no two events are in one group"
    assert sum(len(ids) for ids in found if len(ids) > 1) >= (8 if events == "acde" else 0)
    assert all({id_} in found for id_ in POSTS_ON_EVENTS if id_[0] == "e"), "others are alone"


def test_a_group_explains_itself_and_part_that_its_weakest_link_would_lose(engine: package.Engine) -> None:
    group = next(g for g in engine.group().groups if "s07p1" in g.ids)
    assert (
        group.representative in group.ids
        and group.title.split()[0] in engine.document(group.representative).text
    )
    assert "Name7" in group.names and set(group.names) <= set(group.words)
    assert group.dates == ("2024-01-08", "2024-01-14")
    assert group.weakest is not None and {*group.weakest[:2]} <= {*group.ids} and 0 < group.weakest[2] <= 1
    stays, leaves, _ = group.weakest
    assert leaves in group.leaving and stays not in group.leaving and set(group.leaving) < set(group.ids)
    groups = engine.group()
    copy_of = {m.id: m.near_copy_of for m in groups.members}
    assert {m.date for m in groups.members if m.id == "s07p0"} == {"2024-01-08"}
    for group in groups.groups:
        assert bool(group.leaving) == (group.weakest is not None)
        assert 2 * len(group.leaving) <= len(group.ids)  # the smaller part leaves
        assert all((copy_of[i] in group.leaving) == (i in group.leaving) for i in group.ids if copy_of[i])


def test_order_of_the_corpus_changes_nothing_but_the_numbers(engine: package.Engine, tmp_path: Path) -> None:
    package.create(tmp_path / "i", encoder="none", language="english", positions=True)
    other = package.Engine.open(tmp_path / "i")
    other.add([corpus()[i] for i in np.random.default_rng(1).permutation(len(corpus()))])
    assert partition(other.group()) == partition(engine.group())


def test_documents_far_apart_in_time_are_not_linked(engine: package.Engine) -> None:
    far = engine.group(days=1)
    assert right(partition(far)) == 0 and far.metadata["pairs"] < engine.group().metadata["pairs"]
    assert partition(engine.group(days=30)) == partition(engine.group())


def test_dates_of_spreadsheets_are_read_if_the_day_is_certain(tmp_path: Path) -> None:
    """Dates with slashes below the 13th can be read in two ways: the error names the first, and the remedy."""
    for form, days in (("{:02}.03.2024", 31), ("{:02}/03/2024", 31), ("{:02}/03/2024", 12)):
        dated = [
            Document(d.id, d.text, metadata={"Nr": str(n), "Datum": form.format(1 + n % days)})
            for n, d in enumerate(corpus())
        ]
        field = date_field(dated)
        if days == 12:
            assert field is None
            posts = write(tmp_path / "dated.jsonl", dated)
            refusal = linker("group", posts, "--out", tmp_path / "g.csv", "--days", "3", check=1).stderr
            assert (
                f"Datum of {dated[0].id} is '01/03/2024'" in refusal
                and "in ISO 8601, such as 2024-" in refusal
            )
        else:
            assert field and field.name == "Datum"
            assert field.day(dated[1]) == datetime.date(2024, 3, 2).toordinal()


def known(documents: Sequence[Document]) -> dict[tuple[str, str], bool]:
    """Return each post paired with the first post of its story."""
    return {(d.id[:3] + "p0", d.id): True for d in documents if d.id[3:] in ("p1", "p2", "p3")}


def test_judged_pairs_teach_and_a_promise_is_tested_on_others(engine: package.Engine) -> None:
    judged = known(corpus())
    taught = engine.group(judged)
    assert taught.metadata["learned_from"] > 200 and right(partition(taught)) >= 0.9 * STORIES
    promised = engine.group(judged, precision=0.8)
    assert promised.promise is not None and promised.promise.precision == 0.8
    assert 0 < promised.metadata["learned_from"] < taught.metadata["learned_from"]
    assert promised.metadata["tested_on"] == promised.promise.held >= 40
    assert all(group.probability >= promised.promise.threshold - 1e-4 for group in promised.groups)


def test_a_promise_that_nothing_certifies_leaves_only_near_copies(engine: package.Engine) -> None:
    drawn = draw(engine.group(), 300)
    wrong = {(a, b): i % 2 == 0 for i, (a, b, _) in enumerate(drawn)}
    groups = engine.group(wrong, precision=0.9)
    assert groups.promise is None and groups.metadata["learned_from"] == 0
    assert groups.metadata["tested_on"] == len(drawn)
    assert {frozenset(g.ids) for g in groups.groups} == {frozenset({"copy", "s00p0"})}
    with pytest.raises(InputError, match="judged pairs"):
        engine.group(precision=0.9)


def read(path: Path) -> list[Mapping[str, object]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.suffix == ".xlsx":
        header, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
        return [dict(zip(map(str, header), row, strict=True)) for row in rows]
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".jsonl"])
def test_a_table_holds_every_document_with_its_own_columns(posts: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"groups{suffix}"
    groups = package.group(posts, out)
    rows = read(out)
    assert list(rows[0])[:8] == [
        "id", "group", "probability", "near_copy_of", "title", "text", "passage", "offset"
    ]  # fmt: skip
    for row, member in zip(rows, groups.members, strict=True):
        assert bool(row["passage"]) == (member.probability is not None)
        if row["passage"]:
            assert str(row["text"])[int(str(row["offset"])) :].startswith(str(row["passage"]))
    assert [(row["id"], int(str(row["group"]))) for row in rows] == [(m.id, m.group) for m in groups.members]
    metadata = rows[5]["metadata"] if suffix == ".jsonl" else rows[5]
    assert isinstance(metadata, dict) and metadata["story"] == "1"


def test_the_command_explains_and_draws_pairs_that_a_promise_takes(posts: Path, tmp_path: Path) -> None:
    out, pairs = tmp_path / "groups.csv", tmp_path / "pairs.csv"
    done = linker("group", posts, "--out", out, "--explain", "--sample", pairs, "--json")
    said = json.loads(done.stdout)
    assert said["documents"] == STORIES * POSTS + 1 and said["near_copies"] == 1
    explained = read(tmp_path / "groups.csv.explain.jsonl")
    assert len(explained) == said["groups"] and {"title", "words", "weakest"} <= explained[0].keys()
    rows = read(pairs)
    with pairs.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            verdict = "relevant" if str(row["seed"])[:3] == str(row["id"])[:3] else "not"
            writer.writerow({**row, "verdict": verdict})
    done = linker("group", posts, "--out", out, "--train", pairs, "--precision", "0.8")
    assert "keep a precision of 0.8" in done.stderr


@pytest.mark.parametrize("precision", [0.5, 0.999])
def test_judged_pairs_of_a_sample_estimate_the_recall_of_the_groups_that_are_kept(
    posts: Path, tmp_path: Path, precision: float
) -> None:
    """Measured on all pairs of one story; if nothing is certified, no pair of different texts stays together."""
    out, pairs = tmp_path / "groups.csv", tmp_path / "pairs.csv"
    drawn = package.group(posts, out, sample=pairs)
    assert drawn.recall is None
    rows = [(str(row["seed"]), str(row["id"])) for row in read(pairs)]
    inside = {m.id: m.group for m in drawn.members}
    assert len({inside[a] == inside[b] for a, b in rows}) == 2

    def judged(some: Sequence[tuple[str, str]]) -> None:
        lines = [f"{a},{b},{'relevant' if story(a) == story(b) else 'not'}" for a, b in some]
        pairs.write_text("\n".join(["seed,id,verdict", *lines]) + "\n")

    judged(rows[:-1])
    assert package.group(posts, train=pairs, precision=precision).recall is None
    judged(rows)
    kept = package.group(posts, train=pairs, precision=precision)
    assert (kept.promise is None) == (precision == 0.999)
    group = {m.id: m.group for m in kept.members if m.near_copy_of is None}
    right = [group[a] == group[b] for a in group for b in group if a < b and story(a) == story(b)]
    assert kept.recall is not None
    estimate, low, high = kept.recall
    assert low <= np.mean(right) <= high and low <= estimate <= high
    assert abs(estimate - np.mean(right)) < 0.1 and (estimate > 0.8) == (precision == 0.5)


@pytest.mark.parametrize("suffix", [".csv", ".qrels"])
def test_pairs_judged_as_different_stories_count_in_tables_and_in_qrels(
    posts: Path, tmp_path: Path, suffix: str
) -> None:
    """With verdicts of both kinds, every pair is tested and none is learned from."""
    path = tmp_path / f"pairs{suffix}"
    drawn = draw(package.group(posts), 300)
    rows = [(a, b, int(story(a) == story(b))) for a, b, _ in drawn] + [("s00p1", "s01p1", 0)]
    if suffix == ".csv":
        path.write_text("seed,id,verdict\n" + "".join(f"{a},{b},{verdict}\n" for a, b, verdict in rows))
    else:
        path.write_text("".join(f"{a} 0 {b} {verdict}\n" for a, b, verdict in rows))
    metadata = package.group(posts, train=path, precision=0.5).metadata
    assert metadata["tested_on"] == len(drawn) and metadata["learned_from"] == 0


def test_too_few_judged_pairs_are_not_said_to_be_learned_from(
    posts: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "pairs.qrels"
    path.write_text("s00p1 0 s00p2 1\n")
    with caplog.at_level("INFO"):
        assert package.group(posts, train=path).metadata["learned_from"] == 0
    assert "1 of the compared pairs are judged, too few to learn" in caplog.text
    assert "fitted" not in caplog.text


def story(id_: str) -> str:
    return "s00" if id_ == "copy" else id_[:3]


def test_several_corpora_are_one(posts: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    documents = corpus()
    first, second = write(tmp_path / "a.jsonl", documents[:70]), write(tmp_path / "b.jsonl", documents[70:])
    with caplog.at_level("INFO"):
        assert partition(package.group([first, second])) == partition(package.group(posts))
    assert f"indexing {first}, {second} (" in caplog.text
    with pytest.raises(InputError, match="both have a document 's00p0'"):
        package.group([posts, first])


def test_update_keeps_numbers_and_logs_changes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents, out = corpus(), tmp_path / "groups.csv"
    log = tmp_path / "groups.csv.changes.jsonl"
    arrived = write(tmp_path / "posts.jsonl", documents[8:60])
    first = package.group(arrived, out, update=True)
    assert not log.exists()
    write(arrived, documents[4:100])

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(grouping, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            package.group(arrived, out, update=True)
    after_kill = log.read_text()
    second = package.group(arrived, out, update=True)
    assert log.read_text() == after_kill
    number = {member.id: member.group for member in second.members}
    assert {m.id: m.group for m in first.members}.items() <= number.items()
    assert {int(str(row["group"])) for row in read(out)} == set(number.values())
    assert {change["change"] for change in read(log)} == {"began"}
    write(arrived, documents[4:99])
    package.group(arrived, out, update=True)
    last = read(log)[-1]
    assert (last["change"], last["ids"]) == ("left", [documents[99].id])
    out.write_text("id,name\na,b\n")
    assert "needs a table of groups" in linker("group", arrived, "--out", out, "--update", check=1).stderr


def test_what_cannot_be_used_is_refused(posts: Path, tmp_path: Path) -> None:
    assert "must end in" in linker("group", posts, "--out", tmp_path / "groups.run", check=1).stderr
    bare = write(tmp_path / "bare.jsonl", [Document(d.id, d.text) for d in corpus()])
    assert (
        "--days needs dates"
        in linker("group", bare, "--out", tmp_path / "g.csv", "--days", "3", check=1).stderr
    )
    with pytest.raises(InputError, match="with `out`"):
        package.group(posts, explain=True)
    (tmp_path / "pairs.csv").write_text("one,other\nx,y\n")
    with pytest.raises(InputError, match="do the ids agree"):
        package.group(posts, train=tmp_path / "pairs.csv")
