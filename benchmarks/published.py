"""linker next to published systems: CheckThat! task 2A, English, finding claims already fact-checked.

`python -m benchmarks.published --work FOLDER` → benchmarks/results/published.json. Every row is produced by commands
that a user would type; they are recorded with it. The official measure is MAP@5. Training and dev links are used to
choose and train; test is only searched.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.support.common import shared_data
from benchmarks.support.harness import Arguments, Results, benchmark

SET = "tweets2claims"
MEASURES = "-m MAP@5 -m MRR -m success.1"
TRAIN = "--queries queries.jsonl.gz --qrels qrels/train.tsv"
DATES = "--date-field date --date-direction after"
POSTS = "linker index build corpus.jsonl.gz --tokenizer posts --positions"
# a row may use the output of earlier rows
ROWS = {
    "BM25 as it comes": (
        "linker index build corpus.jsonl.gz --out {out}/bm25",
        "linker search {out}/bm25 --queries queries.jsonl.gz -k 5 --out {out}/run",
    ),
    "BM25 for posts, tuned": (
        f"{POSTS} --out {{out}}/posts",
        f"linker index tune {{out}}/posts {TRAIN} --qrels qrels/dev.tsv",
        "linker search {out}/posts --queries queries.jsonl.gz -k 5 --out {out}/run",
    ),
    "hybrid with MiniLM, untuned": (
        f"{POSTS} --encoder minilm --out {{out}}/minilm",
        "linker search {out}/minilm --queries queries.jsonl.gz -k 5 --out {out}/run",
    ),
    "BM25, learned ranker": (
        f"linker rank train {{out}}/posts {TRAIN} --out {{out}}/ranker-posts",
        "linker search {out}/posts --queries queries.jsonl.gz -k 5 --rerank {out}/ranker-posts --out {out}/run",
    ),
    "hybrid with MiniLM, learned ranker": (
        f"linker rank train {{out}}/minilm {TRAIN} --out {{out}}/ranker",
        "linker search {out}/minilm --queries queries.jsonl.gz -k 5 --rerank {out}/ranker --out {out}/run",
    ),
    "hybrid with MiniLM, learned ranker that sees dates": (
        f"linker rank train {{out}}/minilm {TRAIN} {DATES} --out {{out}}/ranker-dates",
        "linker search {out}/minilm --queries queries.jsonl.gz -k 5 --rerank {out}/ranker-dates --out {out}/run",
    ),
}


def _row(commands: tuple[str, ...], work: Path) -> dict[str, Any]:
    """Run a row's commands in the folder of the data; return its figures on test with 95 % intervals."""
    for command in (*commands, f"linker evaluate qrels/test.tsv {{out}}/run {MEASURES} --ci --json"):
        done = _run(command, work)
    values = json.loads(done)
    return {"commands": [c.replace("{out}/", "") for c in commands], **values}


def _run(command: str, work: Path) -> str:
    words = shlex.split(command.replace("{out}", shlex.quote(str(work))))
    print(command, file=sys.stderr)
    arguments = [sys.executable, "-m", "linker", *words[1:]]
    done = subprocess.run(arguments, cwd=shared_data() / SET, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


@benchmark(seed=0, work=(Path, "folder for indexes and rankers, empty or absent"))
def measured(options: Arguments) -> Results:
    options.work.mkdir(parents=True, exist_ok=True)
    return {name: _row(commands, options.work.resolve()) for name, commands in ROWS.items()}
