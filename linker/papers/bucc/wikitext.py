"""The running text of a page in MediaWiki's markup.

mwparserfromhell tokenises the markup, and one pass over its tokens keeps what a reader sees as running text. The node
tree is not built: that would take four times as long.
"""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from indexes.errors import importing

# Casefolded names from the site information that the wikis publish (action=query&meta=siteinfo), for pages without a
# dump: a dump names its own namespaces. Words with which titles begin, such as "class", are left out.
_ONE_WORD = """
    abdeeling adà bekätakthook bhângsa bólkur catadorie catagóir categoreye categori categoria categorie
    category categorìa categoría categorîa categuria categurìa catigurìa catègorie catégorie dalala
    flocc flokkur ikiciro kaarangay kadegorie kakuniza kalasi karolo kasasiwasiw kateggoría kategooria
    kategoreja kategori kategoria kategorie kategorii kategoriija kategorija kategorio kategoriya
    kategoriye kategoriýa kategory kategorya kategoryjo kategoría kategorî kategourii kateguorėjė
    kategòrëjô kategória katejori kateqoriya katigori katigoria katiguriya kattegerie kattejori katégori
    katõgooria katēggoría kaurian klass luokka lūi-pia̍t māhele neneuhcāyōtl nkyekyem nkyekyεmu
    pinapapilipiliqan roinn-seòrsa ronney rummad saachjrop saachjropp saachjrupp sachgrubb sachjrop
    setensele snakun sokajy taggayt tipanictawin tumbung turkum törkem umuce vibhag wàll ébéonọr
    ñemohenda òtù κατηγορία κατηγορίαν акатегориа ангилал аңгылал гурӯҳ кадегар категори категорие
    категорий категориэ категория категорија категорія катеґорія катигорїꙗ катигорї катэгорыя оагӏат
    санат тоба төркем төркөм янз әәшл կատեգորիա ստորոգութիւն קאַטעגאָריע קאטעגאריע קט קטגוריה بؤلمه
    تصنيف تۈر جرگه رج رده زمرو زمرہ زٲژ سانات ونکی وېشنيزه پۆل گٹھ ܣܕܪܐ ޤިސްމު ߦߌߟߡߊ पुचः वर्ग वर्गः
    विभाग श्र श्रेणी থাক বিষয়শ্রেণী শ্রেণী শ্ৰেণী ਸ਼੍ਰੇਣੀ શ્રે શ્રેણી ବିଭାଗ ଶ୍ରେଣୀ பகுப்பு వర్గం ವರ್ಗ
    ವರ್ಗೊ വി വിഭാഗം വർഗ്ഗം ප්‍රවර්ගය หมวดหมู่ ໝວດ ကဏ္ဍ ပိူင်ထၢၼ်ႈ კატეგორია መደብ ចំណាត់ក្រុម
    ចំណាត់ថ្នាក់ក្រុម ចំនាត់ថ្នាក់ក្រុម ᱛᱷᱚᱠ ẹ̀ka 分类 分類 ꯃꯆꯥꯈꯥꯏꯕ 분류 カテゴリ 𐌷𐌰𐌽𐍃𐌰
"""
CATEGORY = frozenset(_ONE_WORD.split()) | {"sumut atassuseq", "thể loại", "tʼááłáhági átʼéego", "zyuwaw na"}


# Elements whose content is not running text.
HIDDEN = frozenset(
    {
        "categorytree", "ce", "chem", "gallery", "graph", "hiero", "imagemap", "includeonly", "indicator", "inputbox",
        "mapframe", "maplink", "math", "ref", "references", "score", "script", "section", "style", "table",
        "templatedata", "templatestyles", "timeline",
    }
)  # fmt: skip
# Elements whose content is shown verbatim.
LITERAL = frozenset({"nowiki", "pre", "source", "syntaxhighlight"})
BLOCKS = frozenset({"blockquote", "br", "center", "div", "hr", "p", "poem", "pre", "syntaxhighlight"})
MEDIA = frozenset({"file", "image", "media"})

# How many more opening than closing marks a page may have. The tokeniser's time grows with the square of the unclosed
# marks; a page with more of them is broken, and its opening marks become blanks.
_UNCLOSED = {("{{", "}}"): 1000, ("[", "]"): 1000, ("{|", "|}"): 1000, ("<", "/"): 5000}
_MARKUP = re.compile(r"[<&\[{}|~\xad\xa0]|''|__|==|-\{|^[*#:;]|^----", re.MULTILINE)
_REDIRECT = re.compile(r"\s*#[^\W\d_]+\s*:?\s*\[\[[^]]*\]\]")
_MEDIA_FILE = re.compile(
    r"\.(?:apng|bmp|djvu|flac|gif|jpe?g|midi?|mp[34]|mpe?g|og[agv]|opus|pdf|png|stl|svg|tiff?|wav|web[mp]|xcf)\s*$",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(r"(?:[a-z]{2,3}(?:-[a-z]+)*|simple):\S")
# Remains of incomplete markup in the text: brackets, tags, magic words and signatures.
_REMAINS = re.compile(r"\[\[|\]\]|\{\{+|\}\}+|\{\||\|\}|~~~+|__[^\W\d_]+(?:_[^\W\d_]+)*__|</?[a-zA-Z][^<>]*>")
_QUOTES = re.compile(r"'{2,}")
# Placeholders for a literal apostrophe, and for omitted content between apostrophes, while markup quotes are removed.
_KEPT_QUOTE, _GAP = "\ue000", "\ue001"
_VARIANT = re.compile(r"-\{([^{}]*)\}-")
_VARIANTS = ("zh-hans", "zh-cn", "zh")
# Brackets that templates left empty, and separators that they left at the edges of other brackets.
_EMPTY = re.compile(r"[(（]\s*(?:[,;:、，；：–-]\s*)*[)）]")
_BEGINNING = re.compile(r"([(（])\s*[,;:、，；：][\s,;:、，；：]*")
_ENDING = re.compile(r"\s?[,;:、，；：]\s*(?=[)）])")
# Runs of tabs and spaces become one space; spaces at line breaks are removed.
_BLANK = r" \t\xa0\u2000-\u200a\u202f\u3000"
_SPACES = re.compile(rf"[{_BLANK[1:]}][{_BLANK}]*| [{_BLANK}]+")
_BREAKS = re.compile(r" \n ?|\n ")
_EMPTY_LINES = re.compile(r"\n{3,}")


@dataclass(slots=True)
class _Part:
    """An open construct: the text so far, and its title (links), name (elements) or kind."""

    kind: str
    text: list[str] = field(default_factory=list)
    title: str | None = None
    literal: bool = False

    def content(self) -> str:
        return "".join(self.text)


def strip_markup(text: str, media: frozenset[str] = MEDIA, categories: frozenset[str] = CATEGORY) -> str:
    """Return the running text of a page in MediaWiki's markup; text without markup is only stripped.

    Templates, tables, references, galleries, formulas, comments, headings, media with their captions, categories,
    interlanguage links, external links with their labels, and magic words are left out. Links to other pages keep
    their label, and entities become their characters. `media`, `categories`: the casefolded names of these
    namespaces; a link to a file is also recognised by its extension. Raises MissingExtraError without the extra
    'crosslingual'.
    """
    if not _MARKUP.search(text):
        return text.strip()
    if _REDIRECT.match(text):
        return ""
    for (opening, closing), most in _UNCLOSED.items():
        if text.count(opening) - text.count(closing) > most:
            text = text.replace(opening, " ")
    tokens = _tokenizer()(text, 0, True)
    plain = _Walk(media, categories).text(tokens)
    if "''" in plain:
        plain = "\n".join(_without_quotes(line) if "''" in line else line for line in plain.split("\n"))
    if "-{" in plain:
        plain = _VARIANT.sub(_variant, plain)
    plain = plain.replace("\xad", "").replace(_GAP, "").replace(_KEPT_QUOTE, "'")
    plain = _ENDING.sub("", _BEGINNING.sub(r"\1", _EMPTY.sub("", plain)))
    plain = _BREAKS.sub("\n", _SPACES.sub(" ", plain))
    return _EMPTY_LINES.sub("\n\n", plain).strip()


@cache
def _tokenizer() -> Callable[[str, int, bool], Sequence[Any]]:
    with importing("MediaWiki's markup (read by mwparserfromhell)", "crosslingual"):
        from mwparserfromhell import parser

        # The compiled tokenizer's module is missing if there is none for the platform.
        module = import_module(f"{parser.__name__}.{'_tokenizer' if parser.use_c else 'tokenizer'}")
    tokenizer = module.CTokenizer() if parser.use_c else module.Tokenizer()
    tokenize: Callable[[str, int, bool], Sequence[Any]] = tokenizer.tokenize
    return tokenize


class _Walk:
    """One pass over the tokens of a page, with a stack of the constructs that are open."""

    def __init__(self, media: frozenset[str], categories: frozenset[str]) -> None:
        self._media, self._categories = media, categories
        self._open = [_Part("page")]

    def text(self, tokens: Sequence[Any]) -> str:
        """Return the running text of all tokens."""
        for token in tokens:
            name = type(token).__name__
            if name == "Text":
                part = self._open[-1]
                shown, comment, _ = (token.text, "", "") if part.literal else token.text.partition("<!--")
                part.text.append(_literal(shown) if part.literal else _REMAINS.sub("", shown))
                if comment:  # MediaWiki hides the rest of the page after an unclosed comment
                    break
            elif step := _STEPS.get(name):
                step(self, token)
        return "".join(part.content() for part in self._open)

    def begin(self, token: Any) -> None:
        self._open.append(_Part(type(token).__name__, literal=self._open[-1].literal))

    def drop(self, token: Any) -> None:
        """End a construct that leaves no text: a template, a heading, a comment, an external link."""
        self._open.pop()
        self._leave_gap()

    def _leave_gap(self) -> None:
        """Keep apostrophes before and after omitted content from becoming one mark."""
        text = self._open[-1].text
        if text and text[-1].endswith("'"):
            text.append(_GAP)

    def separate(self, token: Any) -> None:
        """Use the text read so far as the title of the link."""
        part = self._open[-1]
        part.title = part.content()
        part.text.clear()

    def end_link(self, token: Any) -> None:
        part = self._open.pop()
        content = part.content()
        title = content if part.title is None else part.title
        if self._is_hidden(title.strip(), part.title is not None):
            self._leave_gap()
        else:
            self._open[-1].text.append(content.lstrip(":") if part.title is None else content)

    def _is_hidden(self, title: str, has_label: bool) -> bool:
        """Return whether a link is invisible in the text, as links to media, categories and other languages are."""
        prefix, colon, rest = title.partition(":")
        if not colon or not prefix:
            return False
        namespace = prefix.strip().replace("_", " ").casefold()
        if namespace in self._media or namespace in self._categories or _MEDIA_FILE.search(rest):
            return True
        return not has_label and _LANGUAGE.match(title) is not None

    def number(self, token: Any) -> None:
        self._open[-1].text.append("#")

    def hexadecimal(self, token: Any) -> None:
        self._open[-1].text.append(token.char)

    def end_entity(self, token: Any) -> None:
        character = html.unescape(f"&{self._open.pop().content()};")
        self._open[-1].text.append(character)

    def begin_content(self, token: Any) -> None:
        """End an opening tag: the text read so far, without attributes, is the element's name."""
        name = self._open.pop().text[0].strip().lower()
        self._open.append(_Part(name, literal=self._open[-1].literal or name in LITERAL))

    def end_element(self, token: Any) -> None:
        self._open.pop()
        self._append_element(self._open.pop())

    def end_empty_element(self, token: Any) -> None:
        self._append_element(_Part(self._open.pop().text[0].strip().lower()))

    def _append_element(self, part: _Part) -> None:
        if part.kind in HIDDEN:
            self._leave_gap()
        else:
            edge = ("\n",) if part.kind in BLOCKS else ()
            self._open[-1].text += (*edge, *part.text, *(edge if part.text else ()))


_STEPS: dict[str, Callable[[_Walk, Any], None]] = {
    **dict.fromkeys(
        ("TemplateOpen", "ArgumentOpen", "WikilinkOpen", "ExternalLinkOpen", "HeadingStart", "CommentStart"),
        _Walk.begin,
    ),
    **dict.fromkeys(("HTMLEntityStart", "TagOpenOpen", "TagOpenClose"), _Walk.begin),
    **dict.fromkeys(
        ("TemplateClose", "ArgumentClose", "ExternalLinkClose", "HeadingEnd", "CommentEnd"), _Walk.drop
    ),
    "WikilinkSeparator": _Walk.separate,
    "WikilinkClose": _Walk.end_link,
    "HTMLEntityNumeric": _Walk.number,
    "HTMLEntityHex": _Walk.hexadecimal,
    "HTMLEntityEnd": _Walk.end_entity,
    "TagCloseOpen": _Walk.begin_content,
    "TagCloseSelfclose": _Walk.end_empty_element,
    "TagCloseClose": _Walk.end_element,
}


def _literal(text: str) -> str:
    return text.replace("''", _KEPT_QUOTE * 2)


def _without_quotes(line: str) -> str:
    """Return a line without the apostrophes that mark bold and italics.

    Two mark italics, three bold, five both; further ones are text. In a line with an odd number of both, as in
    l'''ancien'', MediaWiki reads one bold mark as an apostrophe and italics: if possible, one after a single letter.
    """
    marks = list(_QUOTES.finditer(line))
    kept = [{2: 0, 3: 0, 4: 1}.get(len(mark[0]), len(mark[0]) - 5) for mark in marks]
    sizes = [len(mark[0]) - extra for mark, extra in zip(marks, kept, strict=True)]
    if sum(size != 3 for size in sizes) % 2 and sum(size != 2 for size in sizes) % 2:
        bold = [i for i, size in enumerate(sizes) if size == 3]
        if bold:
            kept[min(bold, key=lambda i: _rank(line[: marks[i].start()]))] += 1
    apostrophes = iter(kept)
    return _QUOTES.sub(lambda _: "'" * next(apostrophes), line)


def _rank(before: str) -> int:
    """Return 0 if a text ends with a one-letter word, 1 if with a longer word, 2 if with a space."""
    if before.endswith(" "):
        return 2
    return 0 if len(before) < 2 or before[-2] == " " else 1


def _variant(match: re.Match[str]) -> str:
    """Return the text shown for -{zh-hans:计算机;zh-hant:電腦}-: one Chinese variant, or nothing for a bare rule."""
    flags, bar, content = match[1].rpartition("|")
    if bar and set(flags.split(";")) & {"H", "T", "D", "-", "N", "+"}:
        return ""
    variants = {
        code.strip(): text.strip()
        for code, colon, text in (piece.partition(":") for piece in content.split(";"))
        if colon and code.strip().startswith("zh")
    }
    chosen = next((variants[code] for code in _VARIANTS if code in variants), None)
    return chosen if chosen is not None else next(iter(variants.values()), content)
