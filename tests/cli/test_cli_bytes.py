"""Files and lines of any bytes: cells, a null item, or one refusal that quotes nothing; cut anywhere they say the same."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sordino as so

pytest.importorskip("click")

from sordino.cli.inputs import read_source
from sordino.cli.stream_lines import Interruption, LineParser, LineReader
from sordino.cli.tables import read_chunks

# What a file of the outside has in its fields, with what only a hostile one has.
FIELDS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(repr),
    st.sampled_from(
        [
            "",
            " 7 ",
            "1e400",
            "0x10",
            "\uff11",
            "nan",
            "2026-01-01T10:00",
            "2026-01-01T10:00Z",
            "a",
            '"',
            "\r",
            "\0",
            "NA",
        ]
    ),
    st.text(max_size=6),
)
BYTES = st.one_of(
    st.binary(max_size=200),
    st.lists(st.tuples(FIELDS, FIELDS), max_size=12).map(
        lambda rows: b"v,u\n" + b"".join(",".join(row).encode("utf-8", "surrogatepass") + b"\n" for row in rows)
    ),
    st.lists(st.tuples(FIELDS, FIELDS), max_size=12).map(
        lambda rows: (
            b"v,u\r\n"
            + b"".join(
                b'"%s"\r\n' % b'","'.join(f.replace('"', '""').encode("utf-8", "surrogatepass") for f in row)
                for row in rows
            )
        )
    ),
)
WAYS = {
    "counts": {"counts_column": "v", "label_column": "u"},
    "values": {"values_column": "v", "bins": 4, "user_column": "u", "max_records": 2},
    "edges": {"values_column": "v", "edges": (0.0, 1.0, 8.0)},
    "times": {"events_column": "v", "start": "2026-01-01", "end": "2026-01-02", "every": "6h"},
    "levels": {"column": ("v:a|b|7",), "user_column": "u", "max_records": 1},
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("way", WAYS)
@given(content=BYTES)
def test_any_file_is_cells_or_one_refusal(way, content, tmp_path):
    file = tmp_path / "in.csv"
    file.write_bytes(content)
    try:
        source = read_source(file, WAYS[way])
    except so.errors.InputFileError as refusal:
        # What is in the file may be in no message, but for names that the caller gave.
        assert not any(field in str(refusal) for field in content.decode("latin-1").split(",") if len(field) > 7)
        return
    if way == "counts":
        assert np.isfinite(source.cells).all() and len(source.labels) == len(source.cells)
    elif way == "levels":
        assert set(np.unique(source.cells)) <= {-1, 0, 1, 2}
    else:
        assert len(source.cells) == 4 - 2 * (way == "edges") and (source.cells >= 0).all()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=BYTES)
def test_pieces_of_a_file_are_the_file(content, tmp_path):
    from sordino.cli.tables import read_columns

    file = tmp_path / "in.csv"
    file.write_bytes(content)

    def read(how):
        try:
            return how()
        except so.errors.InputFileError as refusal:
            return str(refusal)

    def pieces():
        found = [[], []]
        for chunk in read_chunks(file, ["v", "u"]):
            for column, more in zip(found, chunk, strict=True):
                column.extend(more)
        return found

    assert read(pieces) == read(lambda: [list(column) for column in read_columns(file, ["v", "u"])])


@given(content=st.one_of(st.binary(max_size=300), BYTES), cuts=st.lists(st.integers(1, 40), max_size=20))
def test_lines_are_the_same_wherever_they_are_cut(content, cuts):
    """Whatever comes is as many items as lines, and those of plain numbers are these numbers."""

    def items(pieces):
        reading, writing = os.pipe()
        try:
            with Interruption() as interruption:
                reader, parser, found = LineReader(reading, interruption, 2), LineParser(2, ()), []
                for piece in [*pieces, None]:
                    if piece is None:
                        os.close(writing)
                    else:
                        os.write(writing, piece)
                    lines = reader.read()
                    found.extend(parser.items(lines or []).tolist())
                if lines is not None:
                    assert reader.read() is None
                return found
        finally:
            os.close(reading)

    pieces, rest = [], content
    for cut in cuts:
        if rest:
            pieces.append(rest[:cut])
            rest = rest[cut:]
    whole, cut = items([content] if content else []), items([piece for piece in (*pieces, rest) if piece])
    assert whole == cut and len(whole) == content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    assert np.isfinite(np.array(whole)).all()
