"""A compiled hash table that numbers the distinct words of text, because this takes most of the time of indexing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.core.array_types import Bools, Bytes, Int, Int32s, Ints, UInt64s
from podium.core.compiling import helper, kernel
from podium.features.analyzer import LONGEST_WORD

SEPARATOR = "\x1f"  # between words that an analyzer has already split
_SEPARATOR, _APOSTROPHE, _FULL_STOP, _COMMA = 0x1F, ord("'"), ord("."), ord(",")
_LETTER, _DIGIT = 1, 2  # kinds of ASCII characters; 0 separates words
KINDS: Bytes = np.zeros(256, np.uint8)
KINDS[list(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] = _LETTER
KINDS[list(b"0123456789")] = _DIGIT
LOWER = np.array([ord(chr(c).lower()) if c < 128 else c for c in range(256)], np.uint8)
_DOCUMENT, _AT, _N_WORDS, _N_ENTRIES = range(4)  # the state from which `number_words` resumes


class WordTable:
    """Distinct words, numbered in order of first occurrence."""

    def __init__(self) -> None:
        self.size = 0
        self.seed = int.from_bytes(os.urandom(8))  # so that hostile text cannot choose words with colliding slots
        self.hashes: UInt64s = np.empty(1 << 14, np.uint64)
        self.starts: Ints = np.zeros((1 << 14) + 1, np.int64)
        self.bytes: Bytes = np.empty(1 << 17, np.uint8)  # of all words
        self.slots: Int32s = np.full(1 << 15, -1, np.int32)

    def number(self, documents: Sequence[bytes], is_split: Sequence[bool]) -> tuple[Int32s, Ints]:
        """Return the number of each word of documents, and where the words of each document end.

        Args:
            documents: ASCII text, to split by the rule of `podium.features.analyzer`, or words in UTF-8 separated by
                `SEPARATOR`.
            is_split: whether each document is already split.

        """
        text = np.frombuffer(bytearray().join(documents), np.uint8)  # writable, the type that kernels are compiled for
        ends = np.cumsum([len(document) for document in documents], dtype=np.int64)
        words, word_ends = np.empty(len(text) // 2 + len(documents) + 1, np.int32), np.empty(len(documents), np.int64)
        state, seed = np.array([0, 0, 0, self.size]), np.uint64(self.seed)
        arguments = text, ends, np.array(is_split, bool), KINDS, LOWER, seed, state, words, word_ends
        while not number_words(*arguments, self.hashes, self.starts, self.bytes, self.slots):
            self._grow(int(state[_N_ENTRIES]), len(text))
        self.size = int(state[_N_ENTRIES])
        return words[: state[_N_WORDS]], word_ends

    def word(self, number: int) -> str:
        """Return a word by its number."""
        return self.bytes[self.starts[number] : self.starts[number + 1]].tobytes().decode()

    def _grow(self, size: int, room: int) -> None:
        """Make room for twice as many words, or for `room` more bytes."""
        if size < len(self.hashes):
            self.bytes = np.concatenate([self.bytes, np.empty(len(self.bytes) + room, np.uint8)])
            return
        self.hashes = np.concatenate([self.hashes, np.empty_like(self.hashes)])
        self.starts = np.concatenate([self.starts, np.zeros(len(self.starts) - 1, np.int64)])
        self.slots = np.full(2 * len(self.slots), -1, np.int32)
        fill_slots(self.hashes, size, self.slots)


@kernel
def number_words(
    text: Bytes, ends: Ints, is_split: Bools, kinds: Bytes, lower: Bytes, seed: Any, state: Ints, words: Int32s,
    word_ends: Ints, hashes: UInt64s, starts: Ints, stored: Bytes, slots: Int32s,
) -> Any:  # fmt: skip
    """Number the words of documents; return False if the table is full, to resume with a larger one.

    `stored` has the bytes of all words of the table.
    """
    document, at, n_words, n_entries = state[_DOCUMENT], state[_AT], state[_N_WORDS], state[_N_ENTRIES]
    while document < len(ends):
        end, split = ends[document], is_split[document]
        while at < end:
            if (text[at] == _SEPARATOR) if split else (kinds[text[at]] == 0):
                at += 1
                continue
            stop = _split_end(text, at, end) if split else _word_end(text, at, end, kinds)
            last = stop if split else min(stop, at + LONGEST_WORD)
            number = _find_or_add(text, at, last, split, lower, seed, n_entries, hashes, starts, stored, slots)
            if number < 0:
                state[_DOCUMENT], state[_AT], state[_N_WORDS], state[_N_ENTRIES] = document, at, n_words, n_entries
                return False
            n_entries = max(n_entries, number + 1)
            words[n_words] = number
            n_words += 1
            at = stop
        word_ends[document] = n_words
        document += 1
    state[_DOCUMENT], state[_AT], state[_N_WORDS], state[_N_ENTRIES] = document, at, n_words, n_entries
    return True


@helper
def _split_end(text: Bytes, at: Int, end: Int) -> Int:
    """Return the end of the word that begins at a byte, up to a separator."""
    while at < end and text[at] != _SEPARATOR:
        at += 1
    return at


@helper
def _word_end(text: Bytes, at: Int, end: Int, kinds: Bytes) -> Int:
    """Return the end of the ASCII word that begins at a byte."""
    kind = kinds[text[at]]
    while True:
        at += 1
        if at == end:
            return at
        following = kinds[text[at]]
        if following == 0:
            if at + 1 == end:
                return at
            following = kinds[text[at + 1]]
            if following != kind or following == 0:
                return at
            character = text[at]
            joins_digits = character == _FULL_STOP or character == _COMMA
            if not (character == _APOSTROPHE if following == _LETTER else joins_digits):
                return at
            at += 1
        kind = following


@helper
def _find_or_add(
    text: Bytes, at: Int, last: Int, split: Any, lower: Bytes, seed: Any, size: Int, hashes: UInt64s, starts: Ints,
    stored: Bytes, slots: Int32s,
) -> Int:  # fmt: skip
    """Return the number of a word, which may be new; −1 if the table has no room for it."""
    value = seed  # FNV-1a from a random seed
    for k in range(at, last):
        character = text[k] if split else lower[text[k]]
        value = (value ^ np.uint64(character)) * np.uint64(0x100000001B3)
    value ^= value >> np.uint64(29)
    mask = np.uint64(len(slots) - 1)
    slot = value & mask
    while slots[slot] >= 0:
        number = slots[slot]
        if hashes[number] == value and starts[number + 1] - starts[number] == last - at:
            k = 0
            while k < last - at and stored[starts[number] + k] == (text[at + k] if split else lower[text[at + k]]):
                k += 1
            if k == last - at:
                return number
        slot = (slot + np.uint64(1)) & mask
    if size == len(hashes) or starts[size] + last - at > len(stored):
        return -1
    for k in range(last - at):
        stored[starts[size] + k] = text[at + k] if split else lower[text[at + k]]
    starts[size + 1] = starts[size] + last - at
    hashes[size] = value
    slots[slot] = size
    return size


@kernel
def fill_slots(hashes: UInt64s, size: Int, slots: Int32s) -> None:
    """Put the first `size` words into empty slots."""
    mask = np.uint64(len(slots) - 1)
    for number in range(size):
        slot = hashes[number] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number
