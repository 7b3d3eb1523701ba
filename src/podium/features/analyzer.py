"""Analyzers, which split text into terms.

The rules for words, chosen for search and close to Unicode's word boundaries (UAX 29):

- A word is a run of letters, marks and digits of any script. Everything else separates words, including control
  characters.
- An apostrophe between letters belongs to the word (`don't`), as does a full stop or a comma between digits (`3.14`,
  `1,000`). Unlike in UAX 29, underscores and full stops between letters separate words, so that a search for `loads`
  finds `json.loads`, and a search for `csv` finds `read_csv`.
- Text is normalized to NFKC and case-folded; invisible characters inside words, such as soft hyphens, are dropped.
- In every analyzer, a run of characters of a script written without spaces (Chinese, Japanese, Korean, Thai, Lao,
  Khmer, Burmese) is split into overlapping pairs. A run of a single character is a word.
- Words are truncated to 255 characters.

Then the analyzer drops stop words, if it has any, and stems words with the language's Snowball stemmer.
"""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise

from podium.core.validation import did_you_mean
from podium.errors import DataError

LONGEST_WORD = 255  # characters; Lucene's limit
MOST_STEMS = 1 << 20  # stems to cache per language
ALIASES = {"cjk": "standard", "en": "english", "de": "german", "fr": "french", "es": "spanish"}

# Lucene's English stop words.
ENGLISH_STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)

_TEXT = re.compile(r"(?P<name>[a-z_][a-z0-9_]*)\s*(\((?P<options>.*)\))?", re.DOTALL)
_ASCII_WORD = re.compile(r"[a-z0-9]+(?:(?:'(?<=[a-z].)(?=[a-z])|[.,](?<=[0-9].)(?=[0-9]))[a-z0-9]+)*")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_INVALID = re.compile("[\x1f\ud800-\udfff]")  # the separator of `WordTable`, and surrogates, which UTF-8 cannot encode
_DROPPED = dict.fromkeys([0xAD, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF])
_CHANGED = _DROPPED | {0x2019: "'", 0x02BC: "'", ord("_"): " "}

# Typographic quotes and dashes. Once they are replaced, most English text is ASCII, which is split much faster.
_COMMON = [("’", "'"), *((character, " ") for character in "‘“”–—…•\xa0")]

AnalyzerFunction = Callable[[str], Iterable[str]]
_functions: dict[str, AnalyzerFunction] = {}


def register_analyzer(name: str, function: AnalyzerFunction) -> None:
    """Register a function from text to terms as an analyzer.

    Register it in every process that opens an index built with it, because the index only stores the name.

    Args:
        name: its name, in lower-case letters, digits and underscores.
        function: returns the terms of a text in order.

    Example:
        >>> from podium.features import Analyzer, register_analyzer
        >>> register_analyzer("blanks", str.split)
        >>> Analyzer.parse("blanks").terms("Red SHOES")
        ['Red', 'SHOES']

    """
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", name) or name in ALIASES or name in _languages():
        raise DataError(
            "an analyzer's name must consist of lower-case letters, digits and underscores, and must not be a built-in "
            f"name, but got {name!r}"
        )
    if not callable(function):
        raise DataError(f"the analyzer {name!r} must be a function from text to terms, but got {function!r}")
    _functions[name] = function


@dataclass(frozen=True)
class Analyzer:
    """The rule by which a field's text is split into terms.

    Args:
        name: `standard` (no stemming), a language that Snowball supports, such as `english`, or the name of a
            registered function.
        stem: whether to stem the words of a language.
        stopwords: lower-case words to drop before stemming.

    Example:
        >>> from podium.features import Analyzer
        >>> Analyzer.parse("english").terms("The runner's shoes, running")
        ['the', 'runner', 'shoe', 'run']
        >>> Analyzer.parse("english(stopwords=true, stem=false)").terms("the red shoes")
        ['red', 'shoes']
        >>> str(Analyzer.parse("german(stem=false, stopwords=der|die)"))
        'german(stem=false, stopwords=der|die)'

    """

    name: str = "standard"
    stem: bool = True
    stopwords: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.name not in _languages() and self.name not in _functions:
            near = did_you_mean(self.name, [*_languages(), *_functions])
            raise DataError(
                f"there is no analyzer {self.name!r}{near}: use 'standard', a language of Snowball such as 'english', "
                "or register a function of that name with register_analyzer first"
            )
        if self.name in _functions and (self.stopwords or not self.stem):
            raise DataError(f"the analyzer {self.name!r} is a registered function, which does not accept options")

    @classmethod
    def parse(cls, text: str | Analyzer) -> Analyzer:
        """Parse an analyzer such as `english` or `english(stopwords=true, stem=false)`."""
        if isinstance(text, Analyzer):
            return text
        match = _TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            raise DataError(f"expected an analyzer such as 'english' or 'english(stem=false)', but got {text!r}")
        analyzer = cls(ALIASES.get(match["name"], match["name"]))
        for option in filter(None, (part.strip() for part in (match["options"] or "").split(","))):
            key, _, value = (part.strip() for part in option.partition("="))
            if key == "stem" and value in ("true", "false"):
                analyzer = replace(analyzer, stem=value == "true")
            elif key == "stopwords" and value:
                analyzer = replace(analyzer, stopwords=_stop_words(analyzer.name, value))
            else:
                raise DataError(
                    f"analyzer {text!r}: expected stem=true, stem=false, stopwords=true, stopwords=false or "
                    f"stopwords=word|word, but got {option!r}"
                )
        return analyzer

    def __str__(self) -> str:
        options = [] if self.stem else ["stem=false"]
        if self.stopwords:
            is_default = self.name in _STOP_WORDS and self.stopwords == _STOP_WORDS[self.name]
            options.append(f"stopwords={'true' if is_default else '|'.join(sorted(self.stopwords))}")
        return self.name + (f"({', '.join(options)})" if options else "")

    @property
    def stems(self) -> bool:
        """Whether words are stemmed."""
        return self.stem and self.name != "standard" and self.name not in _functions

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text in order, including repetitions."""
        return [term for term in map(self.term, self.words(text)) if term]

    def words(self, text: str) -> list[str]:
        """Return the words of a text before stop words are dropped and words are stemmed.

        The nonempty results of `term` for each word are the terms. An index caches them, so that it analyzes each
        distinct word once.
        """
        if self.name in _functions:
            return _checked(self.name, _functions[self.name](text))
        plain = self.ascii_text(text)
        if plain is not None:
            return _ASCII_WORD.findall(plain.lower())
        if self.name == "turkish":
            text = text.replace("İ", "i").replace("I", "ı")
        text = unicodedata.normalize("NFKC", text).casefold().translate(_CHANGED)
        if not unicodedata.is_normalized("NFKC", text):
            text = unicodedata.normalize("NFKC", text)
        words = unicode_word().findall(text)
        return _with_pairs(words) if _HAS_UNSPACED.search(text) else words

    def ascii_text(self, text: str) -> str | None:
        """Return ASCII text with the same words, or None if the text needs another rule or other characters."""
        if self.name in _functions or self.name == "turkish":
            return None
        if not text.isascii():
            for character, replacement in _COMMON:
                text = text.replace(character, replacement)
        return text if text.isascii() else None

    def term(self, word: str) -> str:
        """Return the term of a word that `words` returned, or "" for a stop word."""
        if self.name in _functions:
            return word
        word = word[:LONGEST_WORD]
        if word in self.stopwords:
            return ""
        return _stemmer(self.name)(word) if self.stems else word


def _checked(name: str, terms: Iterable[str]) -> list[str]:
    """Return the terms that a registered function produced; raise if they are not words."""
    if isinstance(terms, str):
        raise DataError(f"the analyzer {name!r} must return a list of terms, but it returned the text {terms!r:.40}")
    words = list(terms)
    for word in words:
        if not isinstance(word, str) or not word or _INVALID.search(word):
            raise DataError(f"the analyzer {name!r} must return words, but one of its terms is {word!r}")
    return words


_STOP_WORDS = {"english": ENGLISH_STOP_WORDS, "porter": ENGLISH_STOP_WORDS}


def _stop_words(name: str, value: str) -> frozenset[str]:
    if value == "false":
        return frozenset()
    if value != "true":
        return frozenset(filter(None, (word.strip() for word in value.split("|"))))
    if name not in _STOP_WORDS:
        raise DataError(
            f"Podium has no list of stop words for {name!r}: list the words, as in '{name}(stopwords=word|word)'"
        )
    return _STOP_WORDS[name]


@cache
def _languages() -> frozenset[str]:
    import snowballstemmer

    return frozenset(["standard", *snowballstemmer.algorithms()])


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    """Return a function that stems words, with a lock because threads cannot share a stemmer."""
    import snowballstemmer

    stem_word: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord  # uses PyStemmer if it is installed
    lock = threading.Lock()

    @lru_cache(MOST_STEMS)
    def stem(word: str) -> str:
        with lock:
            return stem_word(word) or word

    return stem


@cache
def _marks() -> str:
    """Return the ranges of combining marks, for a character class."""
    is_mark = [unicodedata.category(chr(code))[0] == "M" for code in range(sys.maxunicode + 1)]
    starts = [code for code, mark in enumerate(is_mark) if mark and not is_mark[code - 1]]
    ends = [code for code, mark in enumerate(is_mark) if mark and not is_mark[code + 1]]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


@cache
def unicode_word() -> re.Pattern[str]:
    r"""Return the pattern of a word of any script; `\w` alone splits words at the vowel signs of Indic scripts."""
    word = rf"[\w{_marks()}]+"
    return re.compile(rf"{word}(?:(?:'(?<=[^\W\d].)(?=[^\W\d])|[.,](?<=\d.)(?=\d)){word})*")


@cache
def _unit() -> re.Pattern[str]:
    """Return the pattern of the parts of a word: a character of an unspaced script with its marks, or other text."""
    return re.compile(f"[{_UNSPACED}][{_marks()}]*|[^{_UNSPACED}]+")


def _with_pairs(words: list[str]) -> list[str]:
    """Replace each run of an unspaced script by its overlapping pairs of characters."""
    result: list[str] = []
    for word in words:
        if not _HAS_UNSPACED.search(word):
            result.append(word)
            continue
        run: list[str] = []
        for unit in [*_unit().findall(word), ""]:
            if unit and _HAS_UNSPACED.match(unit):
                run.append(unit)
                continue
            result.extend(map("".join, pairwise(run)) if len(run) > 1 else run)
            run = []
            if unit := unit.strip("'.,"):  # punctuation that joined letters of what are now two words
                result.append(unit)
    return result
