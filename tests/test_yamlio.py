"""The YAML reader: plain values at their place, or one kind of error, whatever the bytes."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from orchestrator.yamlio import MAX_BYTES, Kind, Mapping, Node, Scalar, Sequence, YamlError, parse
from orchestrator.yamlnode import quoted, shown, written

FIXTURES = Path(__file__).parent.parent / "fixtures"


def _scalar(text: str) -> Scalar:
    node = parse(f"key: {text}\n".encode())
    assert isinstance(node, Mapping)
    value = node.items[0][1]
    assert isinstance(value, Scalar)
    return value


def _error(data: bytes) -> YamlError:
    with pytest.raises(YamlError) as caught:
        parse(data)
    return caught.value


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("7d", Kind.STR, "7d"),
        ("no", Kind.STR, "no"),
        ("On", Kind.STR, "On"),
        ("12:30", Kind.STR, "12:30"),
        ("1_000", Kind.STR, "1_000"),
        ("0b11", Kind.STR, "0b11"),
        ("._", Kind.STR, "._"),
        ("<<", Kind.STR, "<<"),
        ("=", Kind.STR, "="),
        ("\u0667", Kind.STR, "\u0667"),
        ("tRUE", Kind.STR, "tRUE"),
        ("'7'", Kind.STR, "7"),
        ('"true"', Kind.STR, "true"),
        ("7", Kind.INT, 7),
        ("-7", Kind.INT, -7),
        ("0755", Kind.INT, 755),
        ("0o17", Kind.INT, 15),
        ("0x1F", Kind.INT, 31),
        ("1e3", Kind.FLOAT, 1000.0),
        (".5", Kind.FLOAT, 0.5),
        ("5.", Kind.FLOAT, 5.0),
        ("-.INF", Kind.FLOAT, -math.inf),
        ("1e999", Kind.FLOAT, math.inf),
        ("True", Kind.BOOL, True),
        ("FALSE", Kind.BOOL, False),
        ("~", Kind.NULL, None),
        ("Null", Kind.NULL, None),
        ("", Kind.NULL, None),
        ("2026-11-30", Kind.TIMESTAMP, "2026-11-30"),
        ("2026-02-30", Kind.TIMESTAMP, "2026-02-30"),
        ("2026-11-30 02:00:00 +1", Kind.TIMESTAMP, "2026-11-30 02:00:00 +1"),
    ],
)
def test_a_plain_scalar_is_what_yaml_1_2_says(text: str, kind: Kind, value: object) -> None:
    scalar = _scalar(text)
    assert scalar.kind is kind
    assert scalar.value == value
    assert type(scalar.value) is type(value)


def test_not_a_number_is_a_float_and_no_finite_number() -> None:
    scalar = _scalar(".nan")
    assert isinstance(scalar.value, float)
    assert math.isnan(scalar.value)
    assert scalar.number is None


@pytest.mark.parametrize(("text", "value"), [("9" * 5000, math.inf), ("-" + "9" * 5000, -math.inf)])
def test_an_integer_too_long_to_convert_is_an_infinity(text: str, value: float) -> None:
    assert _scalar(text).value == value
    assert _scalar(text).number is None


@pytest.mark.parametrize("text", ["9" * 400, "0x" + "f" * 400, "true", "'5'", "~", "1e999"])
def test_what_is_no_finite_number_has_none(text: str) -> None:
    assert _scalar(text).number is None


def test_places_count_from_one_and_a_missing_value_stands_at_its_key() -> None:
    node = parse(b"a:\n  bc:\n\n# comment\n  d: [x,  'y']\n")
    assert isinstance(node, Mapping)
    inner = node.items[0][1]
    assert isinstance(inner, Mapping)
    (bc, nothing), (d, items) = inner.items
    assert isinstance(items, Sequence)
    assert (bc.line, bc.column) == (2, 3)
    assert (nothing.line, nothing.column) == (2, 5)
    assert (d.line, d.column) == (5, 3)
    assert [(item.line, item.column) for item in items.items] == [(5, 7), (5, 11)]


def test_a_byte_order_mark_moves_no_column() -> None:
    node = parse(b"\xef\xbb\xbfa: b\n")
    assert isinstance(node, Mapping)
    assert (node.line, node.column, node.items[0][0].text) == (1, 1, "a")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# only a comment\n", b"---\n", b"--- \n...\n"])
def test_no_document_is_none(data: bytes) -> None:
    assert parse(data) is None


def test_an_escaped_surrogate_pair_is_one_character_as_in_json() -> None:
    assert _scalar('"\\ud83d\\ude00"').text == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    ("data", "says", "line", "column"),
    [
        (b"a: &x 1\n", "anchors (&x)", 1, 4),
        (b"a: *x\n", "aliases (*x)", 1, 4),
        (b"a:\n  <<: {b: 1}\n", "merge keys", 2, 3),
        (b"a: !!str 1\n", "tags", 1, 4),
        (b"a: ! 1\n", "tags", 1, 4),
        (b"a: !mine {}\n", "tags", 1, 4),
        (b"%YAML 1.1\n---\na: 1\n", "directives", 2, 1),
        (b"%TAG ! x:\n---\na: 1\n", "directives", 2, 1),
        (b"a: 1\n---\nb: 1\n", "second document", 2, 1),
        (b"---\n---\n", "second document", 2, 1),
        (b"a: 1\nb: 2\n'a': 3\n", "lines 1 and 3", 3, 1),
        (b"{1: a, 1: b}\n", "stands twice", 1, 8),
        (b"? [a]\n: b\n", "where a key is expected", 1, 3),
        (b"a: {{b}}\n", "where a key is expected", 1, 5),
        (b"a: b: c\n", "not valid YAML", 1, 5),
        (b"a:\tb\n", "not valid YAML", 1, 3),
        (b"a: 'b\n", "not valid YAML", 2, 1),
        (b"a: 1\nb\xff: 2\n", "not UTF-8", 2, 2),
        (b"a: \x00\n", "U+0000", 1, 4),
        (b"a: 1\n# \x1b[31m\n", "U+001B", 2, 3),
        ("a: 1 # x\u2028b: 2\n".encode(), "U+2028", 1, 9),
        ("a: 1 # x\u0085b: 2\n".encode(), "U+0085", 1, 9),
        (b'a: "\\ud800"\n', "surrogate", 1, 4),
        (b'"\\udfff": 1\n', "surrogate", 1, 1),
        (b"a: 1\n<<<<<<< HEAD\nb: 2\n=======\n>>>>>>> x\n", "merge conflict", 2, 1),
        (b"a: 1\r\n=======\r\nb: 2\r\n", "merge conflict", 2, 1),
    ],
)
def test_what_makes_yaml_surprising_is_refused_at_its_place(
    data: bytes, says: str, line: int, column: int
) -> None:
    error = _error(data)
    assert says in error.message
    assert (error.line, error.column) == (line, column)


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"a:\tb\n", "use spaces instead of tabs"),
        (b"a: @b\n", "quote a value that starts with this character"),
        (b"a: 'b\n", "close the quote or bracket"),
        (b"a: b: c\n", "quote a value that contains ': ', or mend the indentation"),
        (b"a: *x\n", "write the value out"),
    ],
)
def test_an_error_says_the_way_out(data: bytes, hint: str) -> None:
    assert _error(data).hint == hint


_ALIASES = b"a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 10)
)
_MERGES = b"a0: &a0 {k: 1}\n" + b"".join(
    b"a%d: &a%d {<<: [%s], k%d: 1}\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9), n)
    for n in range(1, 9)
)
_BOMBS = {
    "alias bomb": _ALIASES,
    "merge bomb": _MERGES,
    "30,000 open brackets": b"a: " + b"[" * 30_000,
    "150 levels of blocks": b"".join(b"  " * n + b"k%d:\n" % n for n in range(150)),
    "10 MB of keys": b"a: 1\n" * 2_000_000,
    "64 KB of question marks": b"? " * 32_000,
    "64 KB of dashes": b"- " * 32_000,
    "64 KB of colons": b": " * 32_000,
    "64 KB of braces": b"{" * 64_000,
    "64 KB of exclamation marks": b"!" * 64_000,
    "64 KB of ampersands": b"&" * 64_000,
    "64 KB of stars": b"*" * 64_000,
    "64 KB of percent signs": b"%" * 64_000,
    "64 KB of bars": b"|" * 64_000,
    "64 KB of commas": b"[" + b"," * 64_000,
    "64 KB of small items": b"[" + b"x," * 32_000 + b"]",
    "16,000 documents": b"---\n" * 16_000,
    "64 KB of one long quote": b"'" + b"x " * 32_000,
}


@pytest.mark.parametrize("name", _BOMBS)
def test_a_bomb_is_refused(name: str) -> None:
    error = _error(_BOMBS[name])
    assert error.message
    assert len(error.message) < 400


@pytest.mark.parametrize("deep", [16, 17])
def test_sixteen_levels_are_read_and_seventeen_refused(deep: int) -> None:
    data = b"[" * deep + b"]" * deep
    if deep == 16:
        assert isinstance(parse(data), Sequence)
    else:
        assert "nested more than 16 levels" in _error(data).message


def test_exactly_the_size_limit_is_read_and_a_byte_more_refused() -> None:
    assert isinstance(parse(b"a: 1\n".ljust(MAX_BYTES, b"#")), Mapping)
    assert "larger than" in _error(b"a: 1\n".ljust(MAX_BYTES + 1, b"#")).message


def test_smaller_limits_can_be_asked_for() -> None:
    with pytest.raises(YamlError, match="larger than 3 bytes"):
        parse(b"a: 1", max_bytes=3)
    with pytest.raises(YamlError, match="nested more than 1 levels"):
        parse(b"[[]]", max_depth=1)
    with pytest.raises(YamlError, match="more than 4 parts"):
        parse(b"[1, 2, 3]", max_events=4)


@given(st.text(max_size=80))
def test_a_written_string_reads_back_as_itself_here_and_elsewhere(text: str) -> None:
    for spelled in (written(text), quoted(text)):
        assert "\n" not in spelled
        assert (scalar := _scalar(spelled)).kind is Kind.STR
        assert scalar.text == text
        assert YAML(typ="safe", pure=True).load(f"key: {spelled}\n")["key"] == text


@given(st.text(max_size=200))
def test_a_shown_string_is_printable_and_short(text: str) -> None:
    assert shown(text).isprintable()
    assert len(shown(text[:60])) <= 602


def _flat(node: Node | None) -> object:
    """Kinds and texts, without places, as the plain loader would build them."""
    if node is None:
        return None
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [_flat(item) for item in node.items]
    return {key.value: _flat(value) for key, value in node.items}


_SEEDS = [
    path.read_bytes()
    for folder in ("configs", "markers")
    for path in sorted((FIXTURES / folder).glob("*.yaml"))
]
_PIECES = [b"&a ", b"*a", b"<<: ", b"!!x ", b"---\n", b"%Y", b"? ", b"- ", b": ", b"\t", b'"', b"{"]


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    raw = bytearray(draw(st.sampled_from(_SEEDS)))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(raw)))
        piece = draw(st.binary(max_size=4) | st.sampled_from(_PIECES))
        raw[at : at + draw(st.integers(0, 6))] = piece
    return bytes(raw)


@settings(max_examples=500, deadline=None)
@given(_mutated() | st.binary(max_size=120) | st.text(max_size=120).map(str.encode))
def test_only_yaml_errors_escape_whatever_the_bytes(data: bytes) -> None:
    try:
        node = parse(data)
    except YamlError as error:
        said, line = error.message, error.line
    else:
        said, line = repr(_flat(node)), None if node is None else node.line
    assert said.isprintable()
    assert line is None or line >= 1


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(_PLAIN)
def test_what_another_writer_dumps_is_read_as_the_same_values(value: object) -> None:
    import io

    out = io.StringIO()
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.dump({"root": value}, out)
    text = out.getvalue()
    if "&" in text or not text.isascii():
        return  # an anchor for a repeated list, or breaks that only YAML 1.1 knows
    assert _flat(parse(text.encode())) == {"root": value}
