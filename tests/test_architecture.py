"""The import arrows of the architecture: who may import whom, and what start-up must not load."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import ROOT, arrows, both_ways, files, floors, graph, imports, map_of_rooms, room
from tests.quick import chosen

HEAVY = ("torch", "faiss", "transformers", "sentence_transformers", "gensim", "pandas", "matplotlib", "scipy")

# The rooms by floor, from the ground up: each may import rooms of the floors above it in this list only.
FLOORS = (
    {"indexes"},
    {"linker/base"},
    {"linker/encoders", "linker/corpora", "linker/evaluation"},
    {"linker/training"},
    {"linker/scoring"},
    {"linker/engine"},
    {"linker/review", "linker/crosslingual"},
    # Nothing imports papers, and the command line reaches server and papers through entry points.
    {"linker/cli", "linker/server", "linker/demo", "linker/integrations", "linker/papers"},
)


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


def test_every_room_has_its_floor() -> None:
    assert {room(path) for path in graph()} - {""} == set().union(*FLOORS)


def test_no_import_runs_up_or_along_a_floor() -> None:
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {other.relative_to(ROOT)}"
        for path, others in graph().items()
        if room(path)  # the names exported by `import linker`, and `python -m linker`
        for other, line in others.items()
        if room(path) != room(other) and floor.get(room(other), len(FLOORS)) >= floor[room(path)]
    ]
    assert not wrong


def test_the_map_is_made_of_the_rooms_own_sentences() -> None:
    """`make house` prints the map for CONTRIBUTING.md."""
    assert "\n".join(map_of_rooms()) in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_compiled_parts_and_their_loader_stand_alone() -> None:
    assert not {
        other
        for path, others in graph().items()
        if path.parent.name == "kernels"
        for other in others
        if other.parent.name != "kernels" and other.stem not in ("cores", "dtypes")
    }


def test_no_file_imports_itself_by_way_of_others() -> None:
    """Repeatedly remove the files that import no remaining files: only cycles are left."""
    left = {path: set(others) for path, others in graph().items()}
    while free := [path for path, others in left.items() if not others & left.keys()]:
        for path in free:
            del left[path]
    assert not sorted(str(path.relative_to(ROOT)) for path in left)


def test_quick_takes_the_nearest_tests_first() -> None:
    tests = {
        ROOT / "tests/a/test_other.py": {"linker.a.star"},
        ROOT / "tests/a/test_star.py": {"linker.b"},
        ROOT / "tests/a/test_far.py": {"linker.b"},
        ROOT / "tests/b/test_b.py": {"linker.a"},
    }
    paths = [ROOT / "linker/a/star.py", ROOT / "tests/b/test_b.py", ROOT / "README.md"]
    names = ["tests/b/test_b.py", "tests/a/test_star.py", "tests/a/test_other.py"]
    assert chosen(paths, tests) == [ROOT / name for name in names]


def test_what_is_counted() -> None:
    made = {Path(name): dict.fromkeys(map(Path, others.split()), 1) for name, others in
            {"a/x": "a/y b/x", "a/y": "b/x c/x", "b/x": "c/x", "c/x": "", "c/__init__.py": "a/x"}.items()}  # fmt: skip
    rooms = arrows(lambda path: path.parent.name, made)
    assert rooms == {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert (floors(rooms), both_ways(rooms)) == (3, 0)
    assert both_ways({"a": {"b", "c"}, "b": {"a"}, "c": {"a"}}) == 2


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


def test_imports_load_nothing_heavy() -> None:
    assert not loaded_by("import linker, indexes, indexes.collection, indexes.writer") & set(HEAVY)


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
