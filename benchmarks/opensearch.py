"""How fast is an index on OpenSearch beside the same one on Elasticsearch?

`python -m benchmarks.opensearch [--work FOLDER] [--sentences N]` → benchmarks/results/opensearch.json. The data, the
queries and the figures are those of benchmarks/cluster.py: sentences with mean word vectors, HNSW, hybrid searches. One
server runs at a time, a node of its own with 512 MiB of heap and its data on the disk, in the turns that `--turns`
gives; on a busy machine its clock says little, and the CPU time of server and client together says more.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.cluster import CLIENTS, QUERIES, Given, figures, given
from benchmarks.cluster import K as TOP
from benchmarks.support.common import record, work_folder
from benchmarks.support.passages import SEED
from tests import elastic_server, opensearch_server

SERVERS = {"elastic": elastic_server.ELASTICSEARCH, "opensearch": opensearch_server.OPENSEARCH}
HEAP = "-Xms512m -Xmx512m"


def measure(server: str, data: Given) -> dict[str, Any]:
    """Return the figures of a new index on a new node of the server."""
    product = SERVERS[server]
    os.environ[f"LINKER_{server.upper()}_TIMEOUT"] = (
        "300"  # a busy machine takes long for many queries at once
    )
    with tempfile.TemporaryDirectory(prefix="cluster-") as disk:
        Path(disk).chmod(0o755)
        options = {f"{product.prefix}_JAVA_OPTS": HEAP}
        node = elastic_server.Node(Path(disk) / "node", environment=options, product=product)
        try:
            node.start()
            version = node.get("/")["version"]["number"]
            found = figures(data, Path(f"{server}+{node.url}/bench-hnsw"), "hnsw", node.pid)
        finally:
            node.stop()
    return {"server": f"{product.name} {version}", **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, help="folder for the data, kept (otherwise temporary)")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--turns", nargs="*", choices=SERVERS, default=["elastic", "opensearch"])
    options = parser.parse_args()
    with work_folder(options.work) as work:
        data, rows = given(work, options.sentences), []
        for server in options.turns:
            rows.append(measure(server, data))
            print(rows[-1], flush=True)
    about = {"sentences": options.sentences, "k": TOP, "queries": QUERIES, "clients": CLIENTS, "heap": HEAP}
    record("opensearch", {**about, "rows": rows}, SEED)


if __name__ == "__main__":
    main()
