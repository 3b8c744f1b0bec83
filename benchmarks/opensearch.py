"""How fast is an index on OpenSearch compared with the same index on Elasticsearch?

`python -m benchmarks.opensearch [--work FOLDER] [--sentences N]` → benchmarks/results/opensearch.json. The data,
queries and figures are the same as in benchmarks/cluster.py: sentences with mean word vectors, HNSW, hybrid searches.
One server runs at a time, a dedicated node with 512 MiB of heap and its data on disk, in the order that `--turns`
gives; on a busy machine wall-clock time means little; the CPU time of server and client together is more reliable.
"""

import os
from pathlib import Path
from typing import Any

from benchmarks.cluster import CLIENTS, QUERIES, Given, figures, given, running
from benchmarks.cluster import K as TOP
from benchmarks.support.harness import WORK, Arguments, Results, benchmark
from benchmarks.support.passages import SEED
from tests import elastic_server, opensearch_server

SERVERS = {"elastic": elastic_server.ELASTICSEARCH, "opensearch": opensearch_server.OPENSEARCH}
HEAP = "-Xms512m -Xmx512m"


def measure(server: str, data: Given) -> dict[str, Any]:
    """Return the figures for a new index on a new node of the server."""
    product = SERVERS[server]
    os.environ[f"LINKER_{server.upper()}_TIMEOUT"] = (
        "300"  # a busy machine needs a long time for many queries at once
    )
    with running(HEAP, product) as node:
        version = node.get("/")["version"]["number"]
        found = figures(data, Path(f"{server}+{node.url}/bench-hnsw"), "hnsw", node.pid)
    return {"server": f"{product.name} {version}", **found}


@benchmark(seed=SEED, work=WORK, sentences=20_000, turns=[*SERVERS])
def measured(options: Arguments) -> Results:
    data, rows = given(options.work, options.sentences), []
    for server in options.turns:
        rows.append(measure(server, data))
        print(rows[-1], flush=True)
    about = {"sentences": options.sentences, "k": TOP, "queries": QUERIES, "clients": CLIENTS, "heap": HEAP}
    return {**about, "rows": rows}
