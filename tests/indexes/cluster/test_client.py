"""Addresses, credentials and errors, against the test's own small server, which records requests."""

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.address import Address, shown
from indexes.cluster import refusal, vectors_of
from indexes.cluster.abilities import REFUSALS
from indexes.cluster.client import ElasticSettings, connect, reason_of
from indexes.cluster.index import ClusterIndex, check_name, new_name
from indexes.interface import BackendUnavailableError, EncoderMismatchError, IndexesError
from indexes.sharded import agreement, check_once, is_index
from indexes.store import manifest as manifests
from indexes.store.records import EncoderRecord, Manifest
from tests.indexes.cluster.recorder import Recorder


def count(url: str) -> int:
    store = ClusterIndex(ElasticSettings((url,), "index"))
    try:
        return store.count()
    finally:
        store.close()


@pytest.mark.parametrize("from_file", [False, True])
def test_credentials_come_from_the_environment_or_a_file_and_show_nowhere(
    recorder: tuple[str, type[Recorder]],
    from_file: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url, handler = recorder
    caplog.set_level(logging.DEBUG)

    def secret(name: str, value: str) -> None:
        if from_file:
            (tmp_path / name).write_text(value + "\n", encoding="utf-8")
            monkeypatch.setenv(f"LINKER_ELASTIC_{name}_FILE", str(tmp_path / name))
        else:
            monkeypatch.setenv(f"LINKER_ELASTIC_{name}", value)

    secret("API_KEY", "c2VjcmV0OmtleQ==")
    assert count(url) == 3
    monkeypatch.delenv("LINKER_ELASTIC_API_KEY", raising=False)
    monkeypatch.delenv("LINKER_ELASTIC_API_KEY_FILE", raising=False)
    secret("USER", "me")
    secret("PASSWORD", "hush")
    assert count(url) == 3
    assert handler.shown == ["ApiKey c2VjcmV0OmtleQ==", "Basic bWU6aHVzaA=="]
    handler.status, handler.body = 401, b'{"error": {"type": "security_exception", "reason": "no"}}'
    with pytest.raises(BackendUnavailableError, match=r"refuses access \(401\)") as refused:
        count(url)
    settings = json.dumps(ElasticSettings((url,), "index").to_json())
    for text in (caplog.text, str(refused.value), repr(refused.value), settings):
        for hidden in ("c2VjcmV0", "hush", "bWU6aHVzaA"):
            assert hidden not in text


def test_credentials_that_contradict_or_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("LINKER_ELASTIC_API_KEY", "k")
        patch.setenv("LINKER_ELASTIC_USER", "me")
        with pytest.raises(IndexesError, match="one of them"):
            connect(ElasticSettings(("http://127.0.0.1:9",), "index"))
    for name, match in (
        ("API_KEY_FILE", "cannot read"),
        ("CA", "names a file that does not exist"),
        ("TIMEOUT", "positive number"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(f"LINKER_ELASTIC_{name}", "/nowhere")
            with pytest.raises(IndexesError, match=match):
                connect(ElasticSettings(("http://127.0.0.1:9",), "index"))


@pytest.mark.parametrize(
    ("status", "body", "error", "match"),
    [
        (404, {"error": {"type": "index_not_found_exception", "reason": "no such index"}}, BackendUnavailableError,
         "linker index rebuild"),
        (429, {"error": {"type": "rejected", "reason": "queue is full"}}, BackendUnavailableError, "queue is full"),
        (503, {"error": {"type": "no_shard", "reason": "all down"}}, BackendUnavailableError, "cannot answer now"),
        (400, {"error": {"root_cause": [{"type": "parsing", "reason": "bad query"}]}}, IndexesError, "bad query"),
        (403, {"error": "denied"}, BackendUnavailableError, "LINKER_ELASTIC_API_KEY"),
    ],
)  # fmt: skip
def test_answers_become_our_errors(
    recorder: tuple[str, type[Recorder]], status: int, body: object, error: type[Exception], match: str
) -> None:
    url, handler = recorder
    handler.status, handler.body = status, json.dumps(body).encode()
    with pytest.raises(error, match=match) as raised:
        count(url)
    assert isinstance(raised.value, BackendUnavailableError) == (error is BackendUnavailableError)


def test_another_product_is_refused(recorder: tuple[str, type[Recorder]]) -> None:
    url, handler = recorder
    handler.product = "Other"
    with pytest.raises(BackendUnavailableError, match="is not Elasticsearch"):
        count(url)


@pytest.mark.parametrize(
    "response",
    [
        {"status": 200, "timed_out": True, "hits": {"hits": [{"sort": [1.0, 0]}]}},
        {"status": 200, "timed_out": False, "_shards": {"failed": 1}, "hits": {"hits": [{"sort": [1.0, 0]}]}},
        {"status": 503, "error": {"type": "no_shard_available", "reason": "gone"}},
    ],
)
def test_a_partial_answer_is_no_answer(recorder: tuple[str, type[Recorder]], response: object) -> None:
    url, handler = recorder
    handler.body = json.dumps({"responses": [response]}).encode()
    store = ClusterIndex(ElasticSettings((url,), "index"))
    with pytest.raises(BackendUnavailableError):
        store.msearch([{"query": {"match_all": {}}}])
    store.close()


def test_an_unknown_encoder_is_named_as_such() -> None:
    """`--encoder none --vectors-file` stores the name "none", which read as if there were no vectors."""
    shards = [
        (Path(name), Manifest(encoder=EncoderRecord("none", "", dim))) for name, dim in (("a", 3), ("b", 4))
    ]
    with pytest.raises(
        EncoderMismatchError, match=r"an unknown one \(3 dimensions\) and an unknown one \(4 "
    ):
        agreement.check(shards)


def test_an_authority_is_for_https_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ca.pem").touch()
    monkeypatch.setenv("LINKER_ELASTIC_CA", str(tmp_path / "ca.pem"))
    connect(ElasticSettings(("http://127.0.0.1:9200",), "index")).close()


def test_settings_that_cannot_be_used() -> None:
    for url in ("ftp://host", "host:9200", "http://", "http://me:hush@host"):
        with pytest.raises(IndexesError) as raised:
            ElasticSettings((url,), "index")
        assert "hush" not in str(raised.value)
    with pytest.raises(IndexesError, match="no address"):
        ElasticSettings((), "index")
    with pytest.raises(IndexesError, match="0 shards"):
        ElasticSettings(("http://host",), "index", shards=0)
    for name in ("Big", "-a", "a*", "a b", "", "a.b.c", "x" * 300):
        with pytest.raises(IndexesError, match="not a valid index name"):
            check_name(name)
    with pytest.raises(
        IndexesError, match="'news-g000001' is a generation of an index: leave out '-g000001'"
    ):
        check_name("news-g000001")
    for stem in ("", "News (2024)", "ÄÖ", "a" * 500):
        assert check_name(new_name(stem)) != new_name(stem)


def test_reasons_are_read_from_any_shape() -> None:
    assert reason_of({"error": "plain"}) == "plain"
    assert reason_of({"error": {"type": "t", "reason": "r"}}) == "t: r"
    assert (
        reason_of({"error": {"type": "t", "reason": "outer", "root_cause": [{"type": "a", "reason": "b"}]}})
        == "a: b"
    )
    assert reason_of(None) == "None"
    assert "x" in reason_of({"type": "x", "reason": None})


NEWS = Address(("https://es1:9200", "https://[::1]:9201"), "news")


@pytest.mark.parametrize(
    "given",
    [
        "elastic+https://es1:9200,[::1]:9201/news", "elastic+https:/es1:9200,[::1]:9201/news/",
        Path("elastic+https://es1:9200,[::1]:9201/news"), "ELASTIC+HTTPS://es1:9200,[::1]:9201/news",
    ],
)  # fmt: skip
def test_an_address_may_be_a_text_or_a_path(given: str | Path) -> None:
    assert Address.of(given) == NEWS


@pytest.mark.parametrize("given", ["news", "/data/news", "https://es1/news", "elastic"])
def test_anything_else_is_a_directory(given: str) -> None:
    assert Address.of(given) is None
    assert shown(Path(given)) == str(Path(given))


@given(
    st.lists(st.from_regex(r"[a-z][a-z0-9.]{0,8}(:[0-9]{1,4})?", fullmatch=True), min_size=1, max_size=3),
    st.from_regex(r"[a-z0-9_-]{1,20}", fullmatch=True),
    st.sampled_from(["http", "https"]),
)
def test_what_is_shown_is_read_back(hosts: list[str], name: str, scheme: str) -> None:
    address = Address(tuple(f"{scheme}://{host}" for host in hosts), name)
    assert Address.of(str(address)) == Address.of(Path(str(address))) == address
    assert shown(Path(str(address))) == str(address)


@pytest.mark.parametrize(
    "given", ["elastic+http://", "elastic+http://es1", "elastic+ftp://es1/x", "elastic+http://a/b/c"]
)
def test_an_address_that_cannot_be_read_is_an_error(given: str) -> None:
    with pytest.raises(IndexesError, match=r"write elastic\+http\(s\)://HOST:PORT/NAME"):
        Address.of(given)


def test_a_password_is_refused_and_not_shown() -> None:
    with pytest.raises(IndexesError, match="LINKER_ELASTIC_PASSWORD") as raised:
        Address.of("elastic+https://me:secret@es1/news")
    assert "secret" not in str(raised.value)


def test_what_needs_a_directory_says_so() -> None:
    with pytest.raises(
        IndexesError, match=r"^elastic\+https://es1:9200,.*/news is an index on a cluster, and "
    ):
        manifests.load(Path(str(NEWS)))


def test_an_address_counts_as_an_index_that_is_searched_alone() -> None:
    assert is_index(Path(str(NEWS)))
    with pytest.raises(IndexesError, match="has shards of its own: search it alone"):
        check_once([Path("somewhere"), Path(str(NEWS))])


@pytest.mark.parametrize("what", REFUSALS)
def test_each_refusal_names_what_why_and_the_remedy(what: str) -> None:
    message = str(refusal(NEWS, what))
    assert message.startswith(f"{NEWS} is an index on Elasticsearch, which does not support {what}: ")
    assert ", or " in message or ": " in message.partition(f"{what}: ")[2]


def test_kinds_of_vectors_are_those_of_the_server() -> None:
    assert vectors_of(NEWS, "auto") == vectors_of(NEWS, "hnsw") == "elastic-hnsw"
    assert vectors_of(NEWS, "flat") == "elastic-flat"
    with pytest.raises(
        IndexesError, match="does not support vectors of the kind 'pq': choose one of auto, elastic-flat"
    ):
        vectors_of(NEWS, "pq")
