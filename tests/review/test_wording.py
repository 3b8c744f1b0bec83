"""Sentences read as English text, and keep the data that other languages need."""

import copy
import json
from decimal import Decimal

import pytest

from linker.review.wording import Sentence, joined, say, say_many


class Shouting:
    """A catalogue that a test can distinguish from English, with a different form for two and more."""

    def gettext(self, message: str, /) -> str:
        return message.replace("found", "FOUND")

    def ngettext(self, one: str, many: str, count: int, /) -> str:
        return self.gettext(one if count <= 2 else many)


def told(text: Sentence) -> str:
    return text.render(Shouting(), lambda value: f"<{value}>")


def test_a_sentence_is_its_english_text() -> None:
    text = say(
        "%(n)s found, %(share)s or %(x)s %% of %(who)s", n=1200, share=0.125, x=Decimal("0.90"), who="a %s"
    )
    assert text == "1,200 found, 12% or 0.90 % of a %s"
    assert told(text) == "<1200> FOUND, <0.125> or <0.90> % of a %s"
    assert json.dumps(text) == f'"{text}"'


@pytest.mark.parametrize(("count", "english", "other"), [
    (1, "1 post found", "<1> post FOUND"), (2, "2 posts found", "<2> post FOUND"),
    (3, "3 posts found", "<3> posts FOUND"),
])  # fmt: skip
def test_the_form_follows_the_count_of_each_language(count: int, english: str, other: str) -> None:
    text = say_many("%(num)s post found", "%(num)s posts found", count)
    assert (text, told(text)) == (english, other)


def test_joined_sentences_keep_their_parts_and_another_noun_stays_out_of_the_values() -> None:
    text = say("(%(all)s)", all=joined([say("found"), say("lost"), Sentence("found")], say(" not found, ")))
    assert text == "(found not found, lost not found, found)"
    assert told(text) == "(FOUND not FOUND, lost not FOUND, found)"
    assert told(copy.deepcopy(text)) == told(text)
    text = say_many("%(num)s document of %(of)s", "%(num)s documents of %(of)s", 5, of="documents").about(
        "100% posts"
    )
    assert text == "5 100% posts of documents"
    assert say("documents").about("documents") == "documents"
