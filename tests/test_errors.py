"""What is wrong with a file is said in one kind of error that names it, before memory is taken for it."""

from __future__ import annotations

import dataclasses
import gzip
import json
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anyorder.arrays import read_arrays
from anyorder.convert import read_hif, read_npz, write_hif
from anyorder.errors import InputError, printable, reading
from anyorder.experiments.hyperedges.data import read_hyperedges
from anyorder.experiments.hyperedges.vocabulary import Vocabulary
from anyorder.experiments.hypergraphs import published
from anyorder.experiments.hypergraphs.files import read_hif_hypergraph
from anyorder.experiments.set_to_graph.files import read_sets
from anyorder.files import read_json, write_json
from anyorder.training.config import override
from anyorder.training.run import Schedule

HUGE = "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }"
HALF = {"incidences": [{"edge": "e", "node": "\udcff"}]}
DEEP = "[" * 100_000 + "]" * 100_000


def npy(header: str, data: bytes = b"") -> bytes:
    """An array file with any header."""
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def npz(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize("error", [EOFError("x"), MemoryError(), RecursionError(), KeyError("x"), OverflowError("x")])
def test_what_a_decoder_raises_is_ours_and_names_the_file(error):
    with pytest.raises(InputError, match=r"^a\.txt is not a letter: ."), reading("a.txt", "a letter"):
        raise error


@pytest.mark.parametrize("error", [AssertionError(), ModuleNotFoundError("rdkit"), OSError(28, "full"), KeyboardInterrupt()])
def test_bugs_missing_libraries_and_the_system_speak_for_themselves(error):
    with pytest.raises(type(error)) as caught, reading("a.txt"):
        raise error
    assert caught.value is error


def test_an_error_that_names_the_file_is_not_prefixed_again():
    with pytest.raises(InputError) as caught, reading("a.txt"), reading("a.txt"):
        raise ValueError("a.txt, line 3: no number")
    assert str(caught.value) == "a.txt, line 3: no number"


BAD_ARRAYS = {
    "a shape of 10^12": (npy(HUGE), "its header announces 8,000,000,000,000"),
    "a negative shape": (npy(HUGE.replace("1000000000000", "-1")), "has the shape"),
    "a header that is no literal": (npy("{'descr': ("), "not a whole NPZ file of plain arrays"),
    "a header without an end": (npy('{"""'), "not a whole NPZ file of plain arrays"),
    "objects": (npy(HUGE.replace("<i8", "|O")), "Python objects, which are not read"),
    "an empty shape of 10^12": (npy(HUGE.replace("(", "(0, ")), "is empty and has the shape"),
    "texts that are none": (npy(HUGE.replace("<i8", "<U1").replace("1000000000000", "1"), b"\xff" * 4), "are no characters"),
    "half of a pair": (npy(HUGE.replace("<i8", ">U1").replace("1000000000000", "1"), b"\0\0\xd8\0"), "are no characters"),
    "too little": (npy(HUGE.replace("1000000000000", "3"), b"12345678"), "announces 24"),
    "a number as Python 2 wrote it": (npy(HUGE.replace("1000000000000", "3L"), b"12345678"), "announces 24"),
    "too much": (npy(HUGE.replace("1000000000000", "1"), bytes(16)), "longer than its header"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_arrays_are_compared_with_the_file_before_memory_is_taken(case, tmp_path):
    content, problem = BAD_ARRAYS[case]
    path = npz(tmp_path / "x.npz", tuples=content)
    tracemalloc.start()
    with pytest.raises(InputError, match=problem) as caught:
        read_arrays(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(path) in str(caught.value) and peak < 5_000_000


@pytest.mark.parametrize("read", [read_npz, read_sets, lambda path: read_hyperedges(path.parent)])
def test_damaged_bytes_of_a_zip_are_ours_in_every_reader(read, tmp_path):
    path = tmp_path / "train_data.npz"
    np.savez_compressed(path, tuples=np.arange(100), features=np.arange(100), train_data=np.arange(100))
    raw = bytearray(path.read_bytes())
    raw[60:70] = b"\xff" * 10
    path.write_bytes(bytes(raw))
    with pytest.raises(InputError, match=r"train_data\.npz"):
        read(path)


def test_a_file_cannot_announce_more_nodes_than_memory_has(tmp_path):
    np.savez(tmp_path / "x.npz", tuples=np.zeros((1, 2), int), values=np.zeros((1, 1)), num_nodes=np.array(10**12))
    with pytest.raises(InputError, match=r"num_nodes must be at most"):
        read_npz(tmp_path / "x.npz")


@pytest.mark.parametrize("raw", [DEEP.encode(), b"\xff\xfe", b'{"a": ', b'{"a": "\\ud800"}', b'["\\uDFFF x"]'])
def test_json_that_cannot_be_used_is_ours(raw, tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(raw)
    for read in (read_json, read_hif, Vocabulary.load):
        with pytest.raises(InputError, match=r"x\.json"):
            read(path)


def test_what_could_not_be_read_is_not_written(tmp_path):
    for write in (
        lambda: write_json(tmp_path / "x.json", {"path": ("a\udcff",)}),
        lambda: write_hif(tmp_path / "x.json", HALF),
    ):
        with pytest.raises(InputError, match="half of a surrogate pair"):
            write()
    assert not (tmp_path / "x.json").exists()


def test_a_whole_pair_of_surrogates_is_a_character(tmp_path):
    (tmp_path / "x.json").write_bytes(b'["\\ud83d\\ude00"]')
    assert read_json(tmp_path / "x.json") == ["\N{GRINNING FACE}"]


@pytest.mark.parametrize(
    "where",
    [{"edges": [{"edge": "e", "weight": 10**400}]}, {"nodes": [{"node": "a", "attrs": {"x": [1, 10**400]}}]}],
)
def test_numbers_of_400_digits_in_hif_are_refused_with_their_place(where: dict[str, Any], tmp_path):
    document = {"incidences": [{"edge": "e", "node": "a"}], **where}
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    with pytest.raises(ValueError, match=r"weight must be at most|more than 300 digits"):
        read_hif_hypergraph(tmp_path / "x.json.gz")


def test_a_setting_of_400_digits_is_refused():
    with pytest.raises(ValueError, match=r"epochs expects a number below 2\^63"):
        override(Schedule(), f"epochs={10**400}")


def test_a_setting_that_python_warns_of_is_a_text():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="epochs"):
            override(Schedule(), "epochs=1is")


def test_a_vocabulary_of_numbers_is_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"format": "anyorder vocabulary 1", "columns": {"a": [1, 2]}}')
    with pytest.raises(InputError, match=r"x\.json: the names of column 'a' must be a list of texts"):
        Vocabulary.load(tmp_path / "x.json")


def test_text_for_the_terminal_moves_no_cursor():
    assert printable("a\x1b]0;title\x07\u202eb\n\tc é") == "a\\x1b]0;title\\x07\\u202eb\n\tc é"


@pytest.mark.parametrize(
    ("content", "edges", "problem"),
    [
        (b"0 1e300 1\n1 0 2\n2 1 1\n", b"0 3\n1 3\n", "must be finite"),
        (b"0 1 1\n1 0 2\n2 1 nan\n", b"0 3\n1 3\n", "expected whole numbers"),
        (b"0 1 1\n1 0 2\n2 1 1\n", b"", "zoo.edges.gz is empty"),
        (b"# nothing\n", b"0 3\n", "not a table of numbers"),
    ],
)
def test_published_text_that_does_not_fit_is_ours_and_warns_of_nothing(content, edges, problem, tmp_path, monkeypatch):
    folder = tmp_path / "hypergraph_nodeclass" / "zoo"
    folder.mkdir(parents=True)
    (folder / "zoo.content.gz").write_bytes(gzip.compress(content))
    (folder / "zoo.edges.gz").write_bytes(gzip.compress(edges))
    monkeypatch.setitem(published.SOURCES, "zoo", dataclasses.replace(published.SOURCES["zoo"], num_nodes=3))
    with pytest.raises(InputError, match=problem):
        published.read_published("zoo", data_dir=tmp_path)


def test_brackets_without_end_in_a_setting_are_refused():
    with pytest.raises(ValueError, match="epochs"):
        override(Schedule(), f"epochs={'(' * 5000}1{')' * 5000}")
