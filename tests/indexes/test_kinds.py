"""One record per kind: the code that reads the records agrees with them."""

from typing import get_args

from indexes.cluster.mapping import mapping
from indexes.kinds import (
    AUTO,
    IN_DIRECTORY,
    KINDS,
    SERVER_TYPES,
    VectorKindName,
    kinds_on,
    may_have_structure,
    on_server,
)
from indexes.vectors.kinds import GENERATORS
from tests.contract.test_vector_contract import BACKENDS, SERVERS
from tests.helpers import ROOT, linker


def test_every_approximate_kind_has_its_generator_with_the_settings_that_the_record_says() -> None:
    assert {name for name in IN_DIRECTORY if may_have_structure(name)} == {*GENERATORS, AUTO}
    for name, generator in GENERATORS.items():
        assert set(generator().settings) == set(KINDS[name].settings)


def test_kinds_on_the_server_are_named_as_elasticsearch_names_them() -> None:
    assert set(kinds_on("elastic")) == {f"elastic-{kind}" for kind in SERVER_TYPES}
    assert set(kinds_on("opensearch")) == {f"opensearch-{kind}" for kind in ("flat", "hnsw")}
    assert {name for name in KINDS if on_server(name)} == {*kinds_on("elastic"), *kinds_on("opensearch")}
    assert not on_server("none")
    for kind in SERVER_TYPES:
        options = mapping(4, kind)["properties"].get("near", {}).get("index_options", {"type": "flat"})
        assert options["type"] == kind


def test_the_choices_of_the_command_line_are_the_kinds() -> None:
    assert get_args(VectorKindName) == tuple(KINDS)


def test_every_kind_is_offered_documented_and_held_to_the_contract() -> None:
    help_text = " ".join(linker("index", "build", "--help").stdout.split())
    page = (ROOT / "docs" / "vectors.md").read_text(encoding="utf-8")
    for name, kind in KINDS.items():
        assert kind.summary in help_text
        assert f"`{name}`" in page
    assert {*KINDS} - {AUTO} <= BACKENDS.keys() | SERVERS.keys()
