"""Text of all sorts, against the slow readers: the same result, or an error at the same place.

`pytest tests/data/test_fuzz.py --hypothesis-profile=fuzz` runs for a long time.
"""

import contextlib
import io

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import podium
from tests.references.readers import Rejected, number, read_delimited_slowly, read_letor_slowly

digits = st.text("0123456789", min_size=1, max_size=25)
decimals = st.builds(
    lambda sign, whole, rest, power: sign + whole + rest + power,
    st.sampled_from(["", "-", "+"]),
    st.one_of(digits, st.just("")),
    st.one_of(st.just(""), st.just("."), digits.map(lambda d: "." + d)),
    st.one_of(st.just(""), st.integers(-60, 60).map(lambda e: f"e{e}"), st.just("E+7"), st.just("e")),
)
numbers = st.one_of(
    decimals,
    st.floats(width=32).map(str),
    st.floats().map(repr),
    st.sampled_from(["nan", "-NaN", "inf", "-Infinity", "infinit", "1_0", "0x1p3", "", "1e400", "-1e-400"]),
)
blanks = st.sampled_from([" ", " ", " ", "\t", "  ", ""])
qids = st.one_of(st.integers(-3, 30).map(str), st.text("ab0é-", max_size=4), st.just("007"))
pairs = st.builds(
    lambda index, colon, value: f"{index}{colon}{value}",
    st.one_of(st.integers(1, 60), st.sampled_from([0, -1, "x", "", "03", "0" * 20 + "9", 10**15])),
    st.sampled_from([":", ":", ":", ":", "", "::"]),
    numbers,
)
sorted_pairs = st.dictionaries(st.integers(1, 50), decimals, max_size=5).map(
    lambda values: " ".join(f"{index}:{values[index]}" for index in sorted(values))
)
lines = st.builds(
    lambda a, label, b, key, qid, c, features, d, comment, end: a + label + b + key + qid + c + features
    + d + comment + end,
    blanks, st.one_of(st.integers(0, 4).map(str), numbers), st.sampled_from([" ", "\t", ""]),
    st.sampled_from(["qid:", "qid:", "qid:", "qid", ""]), qids, st.just(" "),
    st.one_of(sorted_pairs, st.lists(pairs, max_size=4).map(" ".join)), blanks,
    st.sampled_from(["", "", "# doc é 7", "#", "#a#b ", "#\0"]),
    st.sampled_from(["\n", "\n", "\n", "\r\n", " \r\n", "\r", "\n\n", "\0\n"]),
)  # fmt: skip
good_lines = st.builds(
    lambda label, qid, features, comment: f"{label} qid:{qid} {features}{comment}\n",
    st.integers(0, 4), st.integers(1, 4), sorted_pairs, st.sampled_from(["", " # a"]),
)  # fmt: skip
texts = st.one_of(
    st.lists(st.one_of(lines, good_lines, good_lines), max_size=8).map("".join),
    st.text("0123456789.:eE+-#qid \t\r\n\0naf", max_size=60),
)


def same_bits(a, b):
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    return a.shape == b.shape and bool(((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))).all())


@given(texts)
@example("0 qid:1\r\r\n")
@example("\r0 qid:1 1:1\n")
@example("#\0")
def test_letor_is_read_as_the_slow_reader_reads_it(text):
    raw = text.encode()
    try:
        expected = read_letor_slowly(raw, largest_index=50)
    except Rejected as rejected:
        place = f"line {rejected.line}, column {rejected.column}:|has no documents"
        with pytest.raises(podium.FileFormatError, match=place):
            podium.read(io.BytesIO(raw), "letor", largest_index=50, returning_qid="merge")
        return
    if not expected.qid:
        with pytest.raises(podium.FileFormatError, match="has no documents"):
            podium.read(io.BytesIO(raw), "letor")
        return
    for sparse in (False, True):
        with contextlib.suppress(podium.PodiumWarning):
            data = podium.read(io.BytesIO(raw), "letor", largest_index=50, returning_qid="merge", sparse=sparse)
            if sparse:  # toarray turns −0 into 0
                assert np.array_equal(data.features.toarray(), expected.features, equal_nan=True)
            else:
                assert same_bits(data.features, expected.features)
            assert same_bits(data.relevance, expected.labels)
            assert [str(qid) for qid in data.qid] == expected.qid
            assert list(data.document_ids if data.document_ids is not None else ()) in (
                expected.comments,
                [],
            )


@given(st.binary(max_size=80))
@example(b"\r\x00")
@example(b'qid,f\n1,"\n')
def test_arbitrary_bytes_are_read_or_refused(raw):
    assume(not raw.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")))
    for kind in ("letor", "csv"):
        with contextlib.suppress(podium.FileFormatError, podium.PodiumWarning):
            podium.read(io.BytesIO(raw), kind)


@given(numbers)
@example("9007199254740993")
@example("1.00000005960464477539062")
@example("340282356779733661637539395458142568448")
@example("7.006492321624085354618e-46")
@example("3" * 400)
@example("0." + "0" * 400 + "1e401")
def test_a_number_is_the_float32_that_python_rounds_to(text):
    line = f"0 qid:1 1:{text}\n".encode()
    try:
        expected = read_letor_slowly(line).features[0, 0]
    except Rejected:
        return
    assert same_bits(expected, number(text.encode()))
    with contextlib.suppress(podium.PodiumWarning):
        assert same_bits(podium.read(io.BytesIO(line), "letor").features[0, 0], expected)


fields = st.one_of(numbers, decimals, st.sampled_from(["", " 1 ", '"2"', '"a,b"', 'x"y', '"', "é"]))
names = st.one_of(st.integers(0, 3).map(str), st.sampled_from(['"a,b"', '"say ""hi"""', "é", " z ", ""]))
records = st.lists(
    st.tuples(fields, names, names, fields, st.sampled_from(["\n", "\n", "\r\n", ",\n", "\n\n"])), max_size=6
)


@given(records)
def test_delimited_text_is_read_as_the_slow_reader_reads_it(rows):
    body = "".join(f"{label},{qid},{name},{value}{end}" for label, qid, name, value, end in rows)
    text = "label,qid,document_id,f\n" + body
    try:
        expected = read_delimited_slowly(text, ",", frozenset({"qid", "document_id"}))
    except Exception:
        expected = None
    try:
        data = podium.read(io.BytesIO(text.encode()), "csv", returning_qid="merge")
    except podium.PodiumWarning:
        return
    except podium.DataError as error:
        message = str(error)
        strict_about = ("query id is empty", "quote", "infinite")
        acceptable = expected is None or not expected["qid"] or any(w in message for w in strict_about)
        if not acceptable:
            raise
        return
    assert expected is not None, "the slow reader refused this"
    assert same_bits(data.feature("f"), expected["f"])
    assert same_bits(data.relevance, expected["label"])
    assert [str(qid) for qid in data.qid] == expected["qid"]
    assert list(data.document_ids) == expected["document_id"]
