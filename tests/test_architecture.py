"""The arrows of the architecture, walked: who may import whom, and what start-up must not load."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "faiss", "transformers", "sentence_transformers", "gensim", "pandas", "matplotlib", "scipy")

# The rooms (folders, and modules beside them) from the ground up: each may import those above it in this list only.
ROOMS = (
    "indexes/lazy", "indexes/cores", "indexes/errors", "indexes/address", "indexes/dtypes", "indexes/showing",
    "indexes/comparing", "indexes/filters",
    "indexes/interface", "indexes/arrays", "indexes/native", "indexes/kinds", "indexes/packed", "indexes/rows",
    "indexes/fusion", "indexes/disk", "indexes/text", "indexes/hybrid", "indexes/vectors", "indexes/store",
    "indexes/elastic", "indexes/collection",
    "indexes/text_backend", "indexes/writer", "indexes/remote", "indexes/sharded", "indexes/dropping",
    "linker/version",
    "linker/errors", "linker/printable", "linker/logs", "linker/files", "linker/lines", "linker/config",
    "linker/progress",
    "linker/evaluation/reading",
    "linker/evaluation/formats",
    "linker/evaluation", "linker/evaluation/all_pairs",
    "linker/corpora", "linker/tokens", "linker/encoders", "linker/training",
    "linker/probability",
    "linker/crosslingual/pages", "linker/crosslingual/scoring", "linker/crosslingual/lexicon",
    "linker/crosslingual/ranking", "linker/crosslingual", "linker/crosslingual/bucc",
    "linker/crosslingual/aligned",
    "linker/pairs",
    "linker/pairs/sts",
    "linker/pairs/news",
    "linker/ranking",
    "linker/reranking",
    "linker/torch_scan",
    "linker/recall",
    "linker/tuning",
    "linker/snapshot",
    "linker/remote",
    "linker/sharding",
    "linker/engine",
    "linker/vectors",
    "linker/scaleout",
    "linker/intake",
    "linker/resuming",
    "linker/building",
    "linker/review",
    "linker/review/exporting",
    "linker/review/importing",
    "linker/review/stopping",
    "linker/review/learning",
    "linker/review/session",
    "linker/watching",
    "linker/commands",
    "linker/integrations",
    "linker/review/jobs",
    "linker/mcp",
    "linker/web",
    "linker/service",
    "linker/service/routes",
    "linker/service/app",
    "linker/doctor",
    "linker/demo_training",
    "linker/demo_files",
    "linker/demo",
    "linker/cli",
    "linker/__main__",
)  # fmt: skip


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


def room(path: Path) -> str:
    """Return the room of a file: its folder, or the module itself where it lies beside the folders of a package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "/".join(parts if len(parts) == 2 else parts[:-1])


def files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def files_named_init(package: str) -> list[Path]:
    return [path for path in files(package) if path.name == "__init__.py"]


def test_indexes_imports_neither_linker_nor_a_model_library() -> None:
    forbidden = {"linker", "torch", "transformers", "sentence_transformers", "gensim"}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files("indexes")
        for name, line in imports(path)
        if name.partition(".")[0] in forbidden
    ]
    assert not wrong


def graph() -> dict[Path, dict[Path, int]]:
    """Return which file imports which others and on what line; imports inside functions and for typing count."""
    paths = [*files("indexes"), *files("linker")]
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
    }
    found: dict[Path, dict[Path, int]] = {path: {} for path in paths}
    for path in paths:
        names = dict(imports(path))
        # `from package import module` imports the module; the package, only where it takes a name of its own
        of_names = {name.rpartition(".")[0] for name in names if name not in modules}
        of_modules = {name.rpartition(".")[0] for name in names if name in modules}
        for name, line in names.items():
            if modules.get(name, path) != path and (name in of_names or name not in of_modules):
                found[path][modules[name]] = line
    return found


GRAPH = graph()


def test_every_room_has_its_place() -> None:
    packages = {"indexes/__init__", "linker/__init__"}  # they hand out names of all rooms, lazily
    assert {room(path) for path in GRAPH} - packages == set(ROOMS)


def test_no_import_runs_up() -> None:
    place = {name: number for number, name in enumerate(ROOMS)}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} ({room(path)}) imports {other.relative_to(ROOT)} ({room(other)})"
        for path, others in GRAPH.items()
        if room(path) in place
        for other, line in others.items()
        if room(other) in place and place[room(other)] > place[room(path)]
    ]
    assert not wrong


def test_no_file_imports_itself_by_way_of_others() -> None:
    """Take away, again and again, the files that import none of those left: a circle is what remains."""
    left = {path: set(others) for path, others in GRAPH.items()}
    while free := [path for path, others in left.items() if not others & left.keys()]:
        for path in free:
            del left[path]
    assert not sorted(str(path.relative_to(ROOT)) for path in left)


PACKAGES = sorted(
    ".".join(path.parent.relative_to(ROOT).parts)
    for name in ("indexes", "linker")
    for path in files_named_init(name)
)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_is_for_and_hands_out_its_names(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__doc__
    assert module.__doc__.partition("\n")[0].rstrip().endswith(".")
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018 - the access is what is tested


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
