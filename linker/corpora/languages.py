"""Detect the language of texts by their script and most frequent words, for the analysis of an index."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

# Keyed by the names in `indexes.text.parameters.LANGUAGES`.
CODES = {
    "arabic": "ar", "danish": "da", "dutch": "nl", "english": "en", "finnish": "fi", "french": "fr", "german": "de",
    "greek": "el", "hungarian": "hu", "italian": "it", "norwegian": "no", "portuguese": "pt", "romanian": "ro",
    "russian": "ru", "spanish": "es", "swedish": "sv", "tamil": "ta", "turkish": "tr", "chinese": "zh",
    "japanese": "ja", "korean": "ko",
}  # fmt: skip
SCRIPTS = {
    "ARABIC": "arabic", "GREEK": "greek", "CYRILLIC": "russian", "TAMIL": "tamil", "HANGUL": "korean",
    "HIRAGANA": "japanese", "KATAKANA": "japanese", "CJK": "chinese",
}  # fmt: skip
WORDS = {
    "danish": "og i at er det en til på som med af for ikke den har de et fra var jeg hvad også efter blev mere",
    "dutch": "de het een van en in is dat op te voor met zijn niet aan er om ook bij naar wordt deze maar hebben",
    "english": "the of and to in is that for it on was with as be by are this from at have has not they but you",
    "finnish": "ja on ei se että oli hän mutta ovat myös kun joka mukaan sen ole tai kuin jo vain nyt jos niin",
    "french": "le la les de des et est une un du que pas pour dans qui sur au avec ce ne par plus sont nous elle",
    "german": "der die und das ist nicht von den mit ein zu im auf für eine sich des dem auch es wie nach bei aus",
    "hungarian": "a az és hogy nem is egy ez meg csak volt már van azt de el kell még ha mert vagy után lesz",
    "italian": "di che è la il e un per non in una sono con del si le della da i gli al nel anche più come",
    "norwegian": "og i at er det en til på som med av for ikke den har de et fra var jeg hva også etter ble mer noen",
    "portuguese": "de que o a e do da em um para com não uma os no se na por mais as dos ao foi pela são",
    "romanian": "și de la în a nu cu că un o pe care din mai este sunt pentru să sau fost după prin ca al",
    "spanish": "de la que el en y a los se del las un por con no una para es al lo más como pero fue su",
    "swedish": "och i att det som en på är av för med den till inte har om ett från var jag efter mer eller men",
    "turkish": "ve bir bu da de için ile çok ne daha olarak gibi ama var mi kadar olan sonra ise değil her",
}
LISTS = {language: frozenset(words.split()) for language, words in WORDS.items()}
# How many languages share a word: one that many share hardly distinguishes them.
SHARED = Counter(word for words in LISTS.values() for word in words)
TOKEN = re.compile(r"[^\W\d_]+")
# Addresses contain words of other languages, such as "com", which is frequent in Portuguese.
ADDRESS = re.compile(r"(?<![!-~])[!-~]*[a-z]\.[a-z][!-~]*", re.IGNORECASE)
MOST = 20_000  # maximum number of words examined
OTHER = 0.2  # minimum share of non-Latin letters: names and code are Latin everywhere
KANA = 0.2  # ratio of kana to Chinese characters above which a text is Japanese
LEAST = 0.05  # minimum weighted share of a language's most frequent words


def guess_language(texts: Iterable[str]) -> str | None:
    """Return the language of most texts, by its name in an index; None if it cannot be determined."""
    words: list[str] = []
    for text in texts:
        words += TOKEN.findall(ADDRESS.sub(" ", text[:2000]).lower())
        if len(words) >= MOST:
            break
    if found := script_language("".join(words)):
        return found
    counts = Counter(words)
    score = {
        language: [counts[word] / SHARED[word] for word in common if word in counts]
        for language, common in LISTS.items()
    }
    # The word with the most points is left out: it may be a word of another language, such as "die".
    rest = {language: math.fsum(points) - max(points, default=0) for language, points in score.items()}
    best, second = sorted(rest, key=rest.__getitem__, reverse=True)[:2]
    return best if rest[best] > rest[second] and sum(score[best]) >= LEAST * len(words) else None


def script_language(text: str) -> str:
    """Return the language implied by a text's script; "" if nearly all letters are Latin or not in SCRIPTS."""
    letters: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if character.isalpha():
            name = unicodedata.name(character, "").partition(" ")[0]
            letters[SCRIPTS.get(name, "")] += count
    least = OTHER * letters.total()
    if letters["japanese"] > KANA * letters["chinese"] and letters["japanese"] + letters["chinese"] > least:
        return "japanese"
    found, count = max(((n, c) for n, c in letters.items() if n), key=lambda pair: pair[1], default=("", 0))
    return found if count > least else ""
