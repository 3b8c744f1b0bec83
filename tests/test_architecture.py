"""The arrows of the architecture, walked: who may import whom, and what start-up must not load."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "faiss", "transformers", "sentence_transformers", "gensim", "pandas", "matplotlib", "scipy")

# Group of modules → groups it may import (its own is always allowed). Everything may import the base.
BASE = {"errors", "files", "lines", "progress", "__init__"}
MAY = {
    "base": {"indexes"},
    "config": set[str](),
    "tokens": {"indexes"},
    "corpora": {"indexes"},
    "evaluation": set[str](),
    "review": set[str](),
    "tuning": {"indexes"},
    "encoders": {"indexes", "config", "tokens"},
    "training": {"indexes", "corpora", "encoders", "evaluation", "tokens"},
    "crosslingual": {"indexes", "corpora", "encoders", "evaluation"},
    "pairs": {"indexes", "config", "encoders", "evaluation"},
    "reranking": {"indexes", "pairs"},
    "torch_scan": {"indexes"},
    "recall": {"indexes"},
    "engine": {"recall", "torch_scan", "indexes", "corpora", "encoders", "reranking", "tuning"},
    "building": {"indexes", "corpora", "encoders", "intake"},
    "intake": {"indexes", "corpora", "encoders", "scaleout"},
    "scaleout": {"indexes", "encoders"},
    "finding": {"indexes", "corpora", "engine", "review"},
    "doctor": {"indexes"},
    "demo_training": {"encoders", "tokens", "training", "indexes", "evaluation"},
    "demo": {"demo_training", "indexes", "building", "corpora", "encoders", "engine", "evaluation", "training"},
    "cli": {"indexes", "building", "recall",
            "config", "corpora", "crosslingual", "doctor", "encoders", "engine", "evaluation", "finding", "pairs",
            "reranking",
            "review", "training", "tuning"},
    "__main__": {"cli"},
}  # fmt: skip


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield every absolute module a file imports, those inside functions and for typing included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            module = node.module or ""
            yield module, node.lineno
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def group(module: str) -> str | None:
    package, _, rest = module.partition(".")
    if package == "indexes":
        return "indexes"
    if package != "linker":
        return None
    name = rest.partition(".")[0]
    return "base" if not name or name in BASE or name not in MAY else name


def files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def test_indexes_imports_neither_linker_nor_a_model_library() -> None:
    forbidden = {"linker", "torch", "transformers", "sentence_transformers", "gensim"}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files("indexes")
        for name, line in imports(path)
        if name.partition(".")[0] in forbidden
    ]
    assert not wrong


def test_arrows_in_linker_only_point_down() -> None:
    wrong = []
    for path in files("linker"):
        name = path.relative_to(ROOT / "linker").parts[0].removesuffix(".py")
        own = "base" if name in BASE else name
        assert own in MAY, f"{path}: say in this test what it may import"
        if path == ROOT / "linker" / "__init__.py":
            continue  # re-exports, lazily
        for module, line in imports(path):
            target = group(module)
            if target not in {None, "base", own} | MAY[own]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} ({own}) imports {module} ({target})")
    assert not wrong


def loaded_by(code: str, *arguments: str) -> set[str]:
    program = f"{code}\nimport sys\nprint('LOADED', *sorted(m for m in sys.modules if '.' not in m), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stderr.rpartition("LOADED ")[2].split())


RUN = "import contextlib, sys\nfrom linker.cli import main\nwith contextlib.suppress(SystemExit): main()"


@pytest.mark.parametrize("heavy", HEAVY)
def test_imports_load_nothing_heavy(heavy: str) -> None:
    assert heavy not in _everything()


def _everything(cache: list[set[str]] = []) -> set[str]:  # noqa: B006 - one subprocess for all cases
    if not cache:
        cache.append(loaded_by("import linker, indexes, indexes.collection, indexes.writer"))
    return cache[0]


@pytest.mark.parametrize("arguments", [("--help",), ("index", "--help"), ("search", "--help")])
def test_help_loads_neither_numpy_nor_anything_heavy(arguments: tuple[str, ...]) -> None:
    assert not loaded_by(RUN, *arguments) & {*HEAVY, "numpy", "rich"}


def test_evaluate_loads_numpy_at_most(tmp_path: Path) -> None:
    qrels, run = tmp_path / "q", tmp_path / "r"
    qrels.write_text("1 0 a 1\n", encoding="utf-8")
    run.write_text("1 Q0 a 1 0.5 x\n", encoding="utf-8")
    modules = loaded_by(RUN, "evaluate", str(qrels), str(run))
    assert "numpy" in modules
    assert not modules & set(HEAVY)
