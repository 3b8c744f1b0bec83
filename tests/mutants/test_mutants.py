"""The list of mutants matches the tree, and a run distinguishes killed mutants from survivors."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.mutants import ROOT, ListError, Mutant, find_test, locate, read
from tests.mutants.run import Outcome, report

MUTANTS = read()


def test_every_mutant_still_applies() -> None:
    assert len(MUTANTS) >= 150
    for mutant in MUTANTS:
        assert mutant.old != mutant.new
        path = locate(mutant)
        if path.suffix == ".py":
            compile(path.read_text(encoding="utf-8").replace(mutant.old, mutant.new), path, "exec")


def test_the_tests_of_every_mutant_exist() -> None:
    for test in {test for mutant in MUTANTS for test in mutant.tests}:
        path, _, name = find_test(test).partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8") or not name, test


def test_equivalent_mutants_are_few_and_reasoned() -> None:
    reasons = [mutant.equivalent for mutant in MUTANTS if mutant.equivalent]
    assert len(reasons) <= 10
    assert all(len(reason.split()) > 5 for reason in reasons)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in (
        ("linker/__init__.py", ""),
        ("linker/sums.py", "def add(a, b):\n    return a + b\n\n\ndef loop():\n    return False\n"),
        ("tests/test_sums.py", "from linker import sums\n\n\ndef test_add():\n    while sums.loop():\n        pass\n"
                               "    assert sums.add(2, 2) == 4\n"),
        ("tests/test_wrong.py", "def test_wrong():\n    assert False\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n"),
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


CASES = [
    ("a + b", "a - b", "test_sums", "killed"), ("a + b", "a * b", "test_sums", "survived"),
    ("False", "True", "test_sums", "timeout"), ("a + b", "a - b", "test_wrong", "unsound"),
]  # fmt: skip
# In a separate process, since it forks.
JUDGE = """
import sys
from pathlib import Path
from tests.mutants.mutants import Mutant
from tests.mutants.run import Workshop
workshop = Workshop(Path(sys.argv[1]))
for case in sys.argv[2:]:
    old, new, test, wanted = case.split("|")
    mutant = Mutant("m", "linker/sums.py", old, new, (f"tests/{test}.py",))
    print(workshop.judge(mutant, timeout=1 if wanted == "timeout" else 300).outcome)
"""


def test_a_mutant_is_judged_and_taken_back(tree: Path) -> None:
    before = (tree / "linker/sums.py").read_text()
    cases = ["|".join(case) for case in CASES]
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, tree, *cases], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [case[3] for case in CASES]
    assert (tree / "linker/sums.py").read_text() == before


def test_a_file_that_moved_is_found_by_its_text_and_a_wrong_entry_is_named(tree: Path) -> None:
    moved = Mutant("m", "linker/elsewhere/sums.py", "a + b", "a - b", ())
    assert locate(moved, tree) == tree / "linker/sums.py"
    assert find_test("tests/deep/test_sums.py::test_add", tree) == "tests/test_sums.py::test_add"
    with pytest.raises(ListError, match=r"m: linker/sums.py holds 'return' 2 times instead of once"):
        locate(Mutant("m", "linker/sums.py", "return", "yield", ()), tree)
    with pytest.raises(ListError, match=r"there is no linker/none.py, and 0 files hold 'none'"):
        locate(Mutant("m", "linker/none.py", "none", "", ()), tree)


def test_survivors_are_named_but_for_equivalent_ones() -> None:
    outcomes = [
        Outcome("a", "x.py", "killed", 1.0),
        Outcome("b", "x.py", "survived", 1.0),
        Outcome("c", "x.py", "survived", 1.0, "it changes nothing"),
        Outcome("d", "x.py", "unsound", 1.0),
    ]
    data, left = report(outcomes)
    assert left == ["b", "d"]
    assert (data["mutants"], data["killed"], data["survived"]) == (4, 1, 2)
