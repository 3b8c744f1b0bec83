"""Addresses of indexes on a cluster: addresses against directories, and that no password is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.address import Address, shown
from indexes.cluster import refused, vectors_of
from indexes.cluster.abilities import REFUSALS
from indexes.errors import IndexesError
from indexes.sharded import check_once, is_index
from indexes.store import manifest as manifests

NEWS = Address(("https://es1:9200", "https://[::1]:9201"), "news")


@pytest.mark.parametrize(
    "given",
    [
        "elastic+https://es1:9200,[::1]:9201/news",
        "elastic+https:/es1:9200,[::1]:9201/news/",
        Path("elastic+https://es1:9200,[::1]:9201/news"),
        "ELASTIC+HTTPS://es1:9200,[::1]:9201/news",
    ],
)
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
    message = str(refused(NEWS, what))
    assert message.startswith(f"{NEWS} is an index on Elasticsearch, which does not support {what}: ")
    assert ", or " in message or ": " in message.partition(f"{what}: ")[2]


def test_kinds_of_vectors_are_those_of_the_server() -> None:
    assert vectors_of(NEWS, "auto") == vectors_of(NEWS, "hnsw") == "elastic-hnsw"
    assert vectors_of(NEWS, "flat") == "elastic-flat"
    with pytest.raises(IndexesError, match="cannot have the vectors 'pq': choose one of auto, elastic-flat"):
        vectors_of(NEWS, "pq")
