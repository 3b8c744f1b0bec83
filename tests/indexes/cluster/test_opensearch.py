"""Specifics of OpenSearch: its client, its credentials, its vector scores, and the page about it."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.address import Address
from indexes.cluster import NoMasterError, open_remote
from indexes.cluster import opensearch as opensearch_client
from indexes.cluster.client import ElasticSettings, PassingError, api_error
from indexes.cluster.dialects import OPENSEARCH
from indexes.cluster.index import ClusterIndex, new_name
from indexes.errors import IndexesError, UntrustedHostError
from indexes.interface import BackendUnavailableError
from tests.helpers import ROOT, run_page, write_corpus
from tests.indexes.cluster import recorder
from tests.indexes.cluster.recorder import Recorder

PAGE = (ROOT / "docs" / "opensearch.md").read_text(encoding="utf-8")
NEWS = Address(("https://os1:9200",), "news", "opensearch")


@contextlib.contextmanager
def recording() -> Iterator[tuple[str, type[Recorder]]]:
    """Yield the address of a server that responds like OpenSearch, and the recorder of its requests."""
    with recorder.recording() as (url, handler):
        handler.kind = "application/json"
        yield url, handler


def settings(url: str = "https://os1:9200") -> ElasticSettings:
    return ElasticSettings.of(Address((url,), "news", "opensearch"))


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=20))
def test_the_plugins_scores_become_cosines_again(cosines: list[float]) -> None:
    """The plugin's rule, written out: 1 + x, or 1 / (1 − x) if x is negative; −inf pads short results."""
    scores = np.array([1 + x if x >= 0 else 1 / (1 - x) for x in cosines] + [-np.inf], dtype=np.float32)
    np.testing.assert_allclose(OPENSEARCH.cosines(scores), [*cosines, -np.inf], atol=3e-7)
    assert OPENSEARCH.cosines(np.array([1.3, 2 / 3], dtype=np.float32)).tolist() == pytest.approx([0.3, -0.5])


def test_an_address_says_which_server_it_is() -> None:
    assert Address.of("opensearch+https://os1:9200/news") == NEWS == Address.of(Path(str(NEWS)))
    assert str(NEWS) == "opensearch+https://os1:9200/news"
    assert Address(NEWS.urls, NEWS.name) != NEWS
    with pytest.raises(IndexesError, match="LINKER_OPENSEARCH_PASSWORD"):
        Address.of("opensearch+https://me:secret@os1/news")


@pytest.mark.parametrize("from_file", [False, True])
def test_credentials_are_its_own_and_go_to_the_named_address_alone(
    from_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_API_KEY", "c2VjcmV0")  # only for Elasticsearch
    (tmp_path / "password").write_text("hüsh\n", encoding="utf-8")
    monkeypatch.setenv("LINKER_OPENSEARCH_USER", "me")
    if from_file:
        monkeypatch.setenv("LINKER_OPENSEARCH_PASSWORD_FILE", str(tmp_path / "password"))
    else:
        monkeypatch.setenv("LINKER_OPENSEARCH_PASSWORD", "hüsh")
    with recording() as (url, handler), recording() as (elsewhere, other):
        store = ClusterIndex(settings(url))
        assert store.count() == 3
        handler.status, handler.location = 302, elsewhere
        with pytest.raises(IndexesError):
            store.count()
        store.close()
        assert set(handler.shown) == {"Basic bWU6aMO8c2g="}
        assert not other.shown
    with pytest.raises(UntrustedHostError, match="credentials are not sent over plain http"):
        open_remote(Address(("http://example.org:9200",), "news", "opensearch"))
    monkeypatch.setenv("LINKER_OPENSEARCH_API_KEY", "c2VjcmV0")
    with pytest.raises(IndexesError, match="OpenSearch accepts no API keys: use LINKER_OPENSEARCH_USER"):
        open_remote(NEWS)


def test_settings_that_cannot_be_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")
    for name, value, message in (
        ("CA", "/nowhere", "LINKER_OPENSEARCH_CA names a file that does not exist"),
        ("CA", str(tmp_path / "ca.pem"), "contains no certificate"),
        ("TIMEOUT", "0", "LINKER_OPENSEARCH_TIMEOUT is '0'"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(f"LINKER_OPENSEARCH_{name}", value)
            with pytest.raises(IndexesError, match=message):
                opensearch_client.connect(settings())


@pytest.mark.parametrize(
    ("status", "body", "error", "match"),
    [
        (401, b"Unauthorized", BackendUnavailableError, "OpenSearch at .* set LINKER_OPENSEARCH_USER and"),
        (
            503, b'{"error": {"type": "x", "reason": "no cluster-manager"}}', PassingError,
            "name the others, too",
        ),
        (
            400, b'{"error": {"type": "x", "reason": "no"}}', IndexesError,
            r"rejected a request \(400: x: no\)",
        ),
        (400, b'{"error": "unrecognized [cluster_manager_timeout]"}', BackendUnavailableError, "is not OpenSearch"),
        (200, b"<html>", BackendUnavailableError, r"is not OpenSearch: begin its address with elastic\+ for"),
    ],
)  # fmt: skip
def test_answers_become_our_errors(status: int, body: bytes, error: type[Exception], match: str) -> None:
    with recording() as (url, handler):
        handler.status, handler.body = status, body
        store = ClusterIndex(settings(url))
        with pytest.raises(error, match=match):
            store.count()
        store.close()


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(BackendUnavailableError, match=r"OpenSearch at http://127\.0\.0\.1:9 does not answer"):
        open_remote(Address(("http://127.0.0.1:9",), "news", "opensearch"))


@pytest.mark.parametrize(
    "reason", ["unknown setting [index.knn]", "No handler for type [knn_vector] declared"]
)
def test_a_server_without_the_plugin_is_named(reason: str) -> None:
    assert "has no k-NN plugin" in str(api_error(settings(), 400, reason))


def test_a_node_without_a_manager_is_not_believed() -> None:
    with recording() as (url, handler):
        store = ClusterIndex(settings(url))
        store.check_master()  # a missing field says nothing about the manager
        handler.body = b'{"cluster_manager_node": "n1"}'
        store.check_master()
        handler.body = b'{"cluster_manager_node": null}'
        with pytest.raises(NoMasterError, match="has no master now"):
            store.check_master()
        assert handler.paths[-1].startswith("/_cluster/state/cluster_manager_node?local=true")
        store.close()


def test_the_node_knows_its_manager(opensearch: str) -> None:
    store = ClusterIndex(ElasticSettings.of(Address((opensearch,), new_name("led"), "opensearch")))
    store.check_master()
    assert not store.exists()
    assert store.state() is None
    store.close()


def test_an_address_of_the_other_server_is_refused(opensearch: str) -> None:
    with pytest.raises(
        BackendUnavailableError, match=r"is not Elasticsearch: .* opensearch\+ for OpenSearch"
    ):
        open_remote(Address((opensearch,), "news"))


@pytest.mark.slow
def test_the_page_runs(opensearch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", opensearch)
    monkeypatch.setenv("LINKER_OPENSEARCH_TIMEOUT", "60")
    write_corpus(tmp_path / "corpus.jsonl", 50)
    write_corpus(tmp_path / "more.jsonl", 5, prefix="more")
    printed = run_page("opensearch.md", tmp_path, r"<!-- tested -->\n```sh\n(.*?)```", blocks=1)
    assert "55 documents by count" in printed
    source = (ROOT / "indexes" / "cluster" / "client.py").read_text(encoding="utf-8")
    for variable in set(re.findall(r"LINKER_OPENSEARCH_(\w+)", PAGE)):
        assert f'"{variable}"' in source or f"prefix}}{variable}" in source
