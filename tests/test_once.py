"""Everything is defined once: code with one home is found nowhere else, by a walk over the syntax."""

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.house import ROOT, files

Told = Callable[[ast.AST], bool]


def called(name: str, arguments: int | None = None) -> Told:
    """Return whether a node calls a function or method of this name, with this many positional arguments."""

    def told(node: ast.AST) -> bool:
        if not isinstance(node, ast.Call) or arguments not in (None, len(node.args)):
            return False
        return getattr(node.func, "attr", getattr(node.func, "id", "")) == name

    return told


def defined(*names: str) -> Told:
    return lambda node: isinstance(node, ast.FunctionDef) and node.name.strip("_") in names


def logistic_loss(node: ast.AST) -> bool:
    """Return whether a node is a call `np.logaddexp(0, -…)`."""
    return called("logaddexp", 2)(node) and ast.unparse(node).startswith("np.logaddexp(0, -")


def folds(node: ast.AST) -> bool:
    """Return whether a node is a permutation modulo a number of folds."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and called("permutation")(node.left)


def errors_by_kind(node: ast.AST) -> bool:
    """Return whether a node is a dictionary with a kind of error among its keys."""
    return isinstance(node, ast.Dict) and any(
        key and re.fullmatch(r"[\w.]+Error", ast.unparse(key)) for key in node.keys
    )


def replaced(node: ast.AST) -> bool:
    """Return whether a node calls `os.replace`, or `Path.replace`, which has one argument."""
    if not isinstance(node, ast.Call) or node.keywords or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "replace" and (len(node.args) == 1 or ast.unparse(node.func) == "os.replace")


def word(node: ast.AST) -> bool:
    """Return whether a node compiles a regular expression that is one word: letters only, in any number."""
    if not isinstance(node, ast.Call) or not node.args or not called("compile")(node):
        return False
    text = "".join(str(part.value) for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant))
    return (
        re.fullmatch(r"(.*\|)?(\[@#\]\?)?(\[\^\\W[^]]*\](\\w\*|\{\d,\}|\+|\(\?:.*\)\*)|\\w\+)", text)
        is not None
    )


# What it is, how it is recognised, and where it may be.
ONCE: dict[str, tuple[Told, set[str]]] = {
    "calibration error": (
        defined("calibration_error", "ece", "brier"), {"linker/scoring/probability/fitting.py"},
    ),
    "mean reciprocal rank": (
        defined("mrr", "first_ranks", "reciprocal_ranks"), {"linker/evaluation/first_ranks.py"},
    ),
    "logistic regression": (
        logistic_loss, {"linker/scoring/probability/logistic.py"},
    ),
    "random folds": (
        folds, {"linker/evaluation/significance.py"},
    ),
    "the words of a text": (
        word,
        {
            "linker/corpora/dates.py",  # the names of months
            "linker/corpora/languages.py",  # to count the commonest words of a language
            "linker/crosslingual/pages/languages.py",  # with the marks of all scripts
            "linker/crosslingual/pages/surface.py",  # only the letters of romanised text
            "linker/papers/news/overlap.py",  # as the published models read them
            "linker/review/settings.py",  # long words, which show what a story is about
            "linker/scoring/pairs/words.py",
        },
    ),
    "the packages of an extra": (called("requires"), {"linker/base/errors.py"}),
    "the reader of a token file": (
        defined("read_token", "read_tokens", "load_tokens", "digest_of"), {"linker/server/guard/tokens.py"},
    ),
    "what an error is to who asked": (errors_by_kind, {"linker/server/register.py"}),
    "the layer around an application": (called("Admission"), {"linker/server/guard/gate.py"}),
    "the header of a cookie": (
        lambda node: isinstance(node, ast.Constant) and re.search("HttpOnly|SameSite", str(node.value)) is not None,
        {"linker/server/page/sessions.py"},
    ),
    "replacing a file": (
        replaced,
        {
            "indexes/disk/writing.py",
            "indexes/text/segment_files.py",  # named by its content
            "linker/base/files.py",
            "linker/corpora/vectors/exporting.py",  # written by another library
            "linker/review/uploads.py",  # a name that is not taken
            "linker/server/jobs/keeper.py",  # not worth a flush
        },
    ),
    "deleting a folder": (
        lambda node: isinstance(node, ast.Attribute) and node.attr == "rmtree",
        {
            "indexes/store/backup.py",
            "linker/crosslingual/scoring/stages.py",
            "linker/encoders/model_folder.py",
            "linker/integrations/mteb.py",
        },
    ),
}  # fmt: skip


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for path in (*files("indexes"), *files("linker")):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Name | ast.expr_context):  # half of all nodes, and of no interest
                yield name, node


def test_everything_has_one_home() -> None:
    """A second home is merged into the first; an exception has its reason next to it above."""
    homes: dict[str, set[str]] = {what: set() for what in ONCE}
    for path, node in nodes():
        for what, (told, _) in ONCE.items():
            if told(node):
                homes[what].add(path)
    assert homes == {what: places for what, (_, places) in ONCE.items()}


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("calibration error", "def _calibration_error(p): ..."),
        ("mean reciprocal rank", "def mrr(scores): ..."),
        ("logistic regression", "np.logaddexp(0, -signs * margins)"),
        ("random folds", "np.random.default_rng(seed).permutation(count) % 5"),
        ("the words of a text", "re.compile(r'[@#]?[^\\W_]+')"),
        ("the words of a text", "re.compile(r'\\w+')"),
        ("the packages of an extra", "importlib.metadata.requires('linker')"),
        ("what an error is to who asked", "{errors.LockedError: (503, 'locked')}"),
        ("the layer around an application", "Admission(config.hosts)"),
        ("the header of a cookie", "f'{name}={value}; HttpOnly; Path=/'"),
        ("replacing a file", "os.replace(temporary, path)"),
        ("replacing a file", "temporary.replace(path)"),
        ("deleting a folder", "shutil.rmtree(folder)"),
    ],
)
def test_a_second_definition_is_noticed(what: str, code: str) -> None:
    assert any(ONCE[what][0](node) for node in ast.walk(ast.parse(code)))
