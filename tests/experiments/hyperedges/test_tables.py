from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyorder.datasets import csv_stream
from anyorder.experiments.hyperedges import tables
from anyorder.experiments.hyperedges.tables import encode_table, read_table
from anyorder.experiments.hyperedges.vocabulary import CLOSE_ENOUGH, Vocabulary

COLUMNS = ("user", "item", "tag")


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_columns_are_picked_by_name_and_repeated_rows_counted(tmp_path):
    text = "tag,ignored,user,item\nred,1,ann,7\nblue,2,bob,7\nred,3,ann,7\n"
    table = read_table(write(tmp_path / "t.csv", text), COLUMNS)
    rows = dict(zip(map(tuple, table.vocabulary.decode(table.tuples)), table.counts.tolist(), strict=True))
    assert rows == {("ann", "7", "red"): 2, ("bob", "7", "blue"): 1}
    assert table.vocabulary.sizes == (2, 1, 2) and table.num_rows == 3 and table.weights.tolist() == [2.0, 1.0]


def test_weights_of_repeated_rows_add_up(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,b,w\nx,y,0.5\nx,y,2\nz,y,1\n"), ("a", "b"), weight="w")
    assert table.weights.tolist() == [2.5, 1.0] and table.counts.tolist() == [2, 1]


def test_without_a_header_the_columns_come_first_and_the_weight_next(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "x,y,3\n"), ("a", "b"), weight="w", header=False)
    assert table.vocabulary.names == (("x",), ("y",)) and table.weights.tolist() == [3.0]


def test_quotes_spaces_blank_lines_byte_order_marks_and_windows_line_ends(tmp_path):
    text = '\ufeffa,b\r\n"x, 1", y \r\n\r\n   \r\nü,"two\nlines"\r\n'
    table = read_table(write(tmp_path / "t.csv", text), ("a", "b"))
    assert table.vocabulary.names == (("x, 1", "ü"), ("y", "two\nlines"))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60), st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_chunks_and_merges_change_nothing(tmp_path_factory, rows, chunk):
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    write(path, "a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_stream, "CHUNK_ROWS", chunk)
        patch.setattr(tables, "MERGE_ROWS", chunk)
        table = read_table(path, ("a", "b"))
    found = zip(map(tuple, table.vocabulary.decode(table.tuples)), table.counts.tolist(), strict=True)
    assert dict(found) == Counter((str(a), str(b)) for a, b in rows)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\nx,y\nx,\n", "line 3: the value of column 'b' is missing"),
        ("a,b\nx,y\n  ,y\n", "line 3: the value of column 'a' is missing"),
        ("a,b\nx,y\n\nx\n", r"line 4: expected 2 fields, got 1: \['x'\]"),
        ("a,b\nx,y,z\n", "line 2: expected 2 fields, got 3"),
        (b"a,b\nx,y\nx,\xe9\n", "line 3: byte 0xe9 at column 3 is not UTF-8"),
        (b"\xff\xfea\x00,\x00b\x00\n", "line 1: byte 0xff at column 1 is not UTF-8"),
        ('a,b\n"two\nlines",y\nx,\n', "line 4: the value of column 'b' is missing"),
        ('a,b\n"x"y,z\n', "line 2: not a CSV line"),
        ("a,c\nx,y\n", r"line 1: the header must name 'b' exactly once, got \['a', 'c'\]"),
        ("a,b,b\nx,y,z\n", "line 1: the header must name 'b' exactly once"),
        ("a\nx\n", "line 1: the header must name 'b' exactly once"),
        ("a,b\n", "holds no rows"),
        ("", "holds no rows"),
    ],
)
def test_bad_files_are_refused_with_the_line(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path / "t.csv", content), ("a", "b"))


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "inf", "many", ""])
def test_bad_weights_are_refused_with_the_line(tmp_path, weight):
    path = write(tmp_path / "t.csv", f"a,b,w\nx,y,1\nx,y,{weight}\n")
    with pytest.raises(ValueError, match=r"line 3: a weight must be a positive number"):
        read_table(path, ("a", "b"), weight="w")


def test_the_line_is_right_beyond_the_first_chunk(tmp_path):
    rows = 3 * csv_stream.CHUNK_ROWS + 5
    text = "a,b\n" + "x,y\n" * rows + "x,\n"
    with pytest.raises(ValueError, match=f"line {rows + 2}: the value"):
        read_table(write(tmp_path / "t.csv", text), ("a", "b"))
    bad = text.encode().replace(b"x,\n", b"x,\xff\n")
    with pytest.raises(ValueError, match=f"line {rows + 2}: byte 0xff"):
        read_table(write(tmp_path / "t.csv", bad), ("a", "b"))


def test_bad_columns_are_refused(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\nx,y\n")
    with pytest.raises(ValueError, match="at least two columns"):
        read_table(path, ("a",))
    with pytest.raises(ValueError, match="must be different"):
        read_table(path, ("a", "a"))
    with pytest.raises(FileNotFoundError, match="does not exist or is not a file"):
        read_table(tmp_path / "absent.csv", ("a", "b"))


def test_a_bar_shows_progress(tmp_path, capsys):
    pytest.importorskip("rich")
    table = read_table(write(tmp_path / "t.csv", "a,b\nx,y\n"), ("a", "b"), progress=True)
    assert len(table) == 1 and "Reading t.csv" in capsys.readouterr().out


def test_a_table_splits_into_hyperedges(tmp_path):
    text = "a,b,w\n" + "".join(f"x{i},y{i % 7},{i + 1}\n" for i in range(50))
    table = read_table(write(tmp_path / "t.csv", text), ("a", "b"), weight="w")
    data = table.split(0.2, seed=1)
    assert (len(data.train), len(data.test), data.names, data.sizes) == (40, 10, ("a", "b"), (50, 7))
    assert data.unseen("test").all()
    weight_of = dict(zip(map(tuple, table.tuples.tolist()), table.weights, strict=True))
    assert [weight_of[tuple(row)] for row in data.train.tolist()] == data.train_weights.tolist()
    with pytest.raises(ValueError, match="leaves a part empty"):
        table.split(0.001)


def test_vocabulary_survives_saving(tmp_path):
    words = Vocabulary(("user", "tag"), (("ann", "Zoë"), ('a "quoted" one', "two\nlines", "7")))
    words.save(tmp_path / "v.json")
    assert Vocabulary.load(tmp_path / "v.json") == words


@pytest.mark.parametrize("content", ["not json", "[]", json.dumps({"format": "other"})])
def test_other_files_are_no_vocabulary(tmp_path, content):
    with pytest.raises(ValueError, match=r"is no vocabulary|is not a whole JSON file"):
        Vocabulary.load(write(tmp_path / "v.json", content))


def test_unknown_names_are_refused_with_line_and_nearest_name(tmp_path):
    words = Vocabulary(("user", "tag"), (("user41", "user42"), ("red", "Blue")))
    path = write(tmp_path / "c.csv", "user,tag\nuser42,red\nuser43,bleu\n")
    with pytest.raises(ValueError, match=r"line 3: user 'user43' is unknown \(2 known\); the nearest known name is 'use"):
        list(encode_table(path, words))
    with pytest.raises(ValueError, match=r"tag 'BLUES' is unknown .* 'Blue'"):
        words.encode_query(["?", "BLUES"])
    with pytest.raises(ValueError, match=r"tag 'zzz' is unknown \(2 known\)$"):
        words.node("tag", "zzz")
    with pytest.raises(ValueError, match="there is no column 'item'"):
        words.node("item", "x")
    with pytest.raises(ValueError, match="expected 2 names"):
        words.encode([["user42"]])


def test_candidates_are_encoded_by_name(tmp_path):
    words = Vocabulary(("user", "tag"), (("u1", "u2"), ("red", "blue")))
    path = write(tmp_path / "c.csv", "tag,user\nblue,u1\nred,u2\n")
    ((chunk, tuples),) = encode_table(path, words)
    assert tuples.tolist() == [[0, 3], [1, 2]] and chunk.rows == [["blue", "u1"], ["red", "u2"]]


def test_the_nearest_of_many_names_is_found():
    names = tuple(f"item{number:06d}" for number in range(3 * CLOSE_ENOUGH))
    with pytest.raises(ValueError, match="the nearest known name is 'item0"):
        Vocabulary(("item", "x"), (names, ("y",))).node("item", "item0012345")


def test_vocabulary_names_are_different():
    with pytest.raises(ValueError, match="must all be different"):
        Vocabulary(("a", "b"), (("x", "x"), ("y",)))


def test_ids_agree_with_the_offsets_of_hyperedges():
    words = Vocabulary(("a", "b"), (("x", "y"), ("z",)))
    assert words.encode([["y", "z"]]).tolist() == [[1, 2]]
    assert words.decode(np.array([[0, 2]])) == [["x", "z"]]
