"""The operations that an index on a cluster supports, and the errors for the others."""

from dataclasses import dataclass

from indexes.address import Address
from indexes.cluster.client import PRODUCTS
from indexes.interface import IndexesError
from indexes.kinds import AUTO, kinds_on


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a backend supports without a directory; `vectors`: the kind of vectors for each name that a build takes."""

    name: str
    vectors: dict[str, str]


REFUSALS = {  # unsupported operations, with the reason and the alternative
    "`keep`": "a change is visible at once, so there are no older generations: take snapshots of the "
    "cluster instead",
    "backups": "its documents are in the servers' files: take a snapshot of its indexes, NAME-*, with the cluster's "
    "own API",
    "older generations": "a change is visible at once, and nothing older is kept: restore a snapshot of the cluster",
    "a copy of the encoder": "models stay where they are: name the model's folder with `encoder` at each use",
}


def _abilities(server: str) -> Abilities:
    product, kinds = PRODUCTS[server], kinds_on(server)
    short = {"none": "none", AUTO: f"{server}-hnsw", "flat": f"{server}-flat", "hnsw": f"{server}-hnsw"}
    return Abilities(product, short | dict(zip(kinds, kinds, strict=True)))


ABILITIES = {server: _abilities(server) for server in PRODUCTS}


def abilities_of(address: Address) -> Abilities:
    """Return the abilities of the index at an address."""
    return ABILITIES[address.server]


def refusal(address: Address, what: str) -> IndexesError:
    """Return the error for an unsupported operation, which says what, why and the remedy."""
    by = abilities_of(address)
    return IndexesError(
        f"{address} is an index on {by.name}, which does not support {what}: {REFUSALS[what]}"
    )


def vectors_of(address: Address, kind: str) -> str:
    """Return the full name of the `kind` of vectors that a build requests. Raises IndexesError if it is unsupported."""
    by = abilities_of(address)
    if kind not in by.vectors:
        raise IndexesError(
            f"{address} does not support vectors of the kind {kind!r}: choose one of {', '.join(sorted(by.vectors))}"
        )
    return by.vectors[kind]
