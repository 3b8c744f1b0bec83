"""Several directories searched as one index: global BM25 statistics and one fusion, with the results of one index."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from indexes.sharded.collection import ShardedCollection, open_shards
    from indexes.sharded.listing import check_once, is_index, join, manifests_of, shards_of

__all__ = ["ShardedCollection", "check_once", "is_index", "join", "manifests_of", "open_shards", "shards_of"]
__getattr__ = lazy(__name__)
