"""Molecules: graphs as OGB has them, tables, stores that survive interruption and damage, official folders."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, cast
from unittest import TestCase

import numpy as np
import pytest
import torch

from anyorder.errors import InputError
from anyorder.experiments.molecules import build as molecule_build
from anyorder.experiments.molecules.data import (
    PCQM4MV2_2K,
    QM9_GAP,
    BuildOptions,
    Molecule,
    MoleculeStore,
    build_store,
    open_named,
    open_pcqm4m,
    open_table,
)
from anyorder.experiments.molecules.graphs import (
    ATOM_FEATURES,
    BOND_FEATURES,
    SmilesRow,
    UnreadableMoleculeError,
    convert_rows,
    fingerprint,
    smiles_to_graph,
)
from anyorder.experiments.molecules.sources import MoleculeTable, Target, fixed_split, load_split
from anyorder.experiments.molecules.store import write_shard
from data_folder import DATA

HERE = BuildOptions(workers=0, shard_rows=4)
VARIED = [
    "C",  # one atom
    "[Na+].[Cl-]",  # ions without bonds
    "[H][H]",
    "[Fe+3]",
    "*CC*",  # dummy atoms
    "[U]F",
    "N[C@@H](C)C(=O)O",
    "N[C@H](C)C(=O)[O-]",
    "F/C=C/F",
    "F/C=C\\F",
    "[CH3]",  # radical
    "[O][O]",
    "c1ccc2[nH]ccc2c1",
    "C#N",
    "FS(F)(F)(F)(F)F",
    "[13CH4]",
    "[NH4+].[NH4+].[O-]S(=O)(=O)[O-]",
    "O=C1[N]c2ccncc2[CH][C@@H]1c1ccc(cc1)C",
    "N->[Cu]",
    "OCl(=O)(=O)=O",
    "C1CC1C=C=CC2CCCCCCC2",
    "CC(C)(C)[Si](C)(C)OP(=S)(Cl)B1OCCO1",
]


def write_table(path: Path, smiles: list[str], gaps: list[Any] | None = None) -> MoleculeTable:
    gaps = [0.5 * i for i in range(len(smiles))] if gaps is None else gaps
    lines = ["id,smiles,gap", *(f"m{i},{text},{gap}" for i, (text, gap) in enumerate(zip(smiles, gaps, strict=True)))]
    path.write_text("\n".join(lines) + "\n")
    return MoleculeTable(path, "smiles", (Target("gap"),))


def assert_is_ogb(molecule: Molecule, smiles: str) -> None:
    from ogb.utils import smiles2graph

    expected = smiles2graph(smiles)
    np.testing.assert_array_equal(molecule.atoms, expected["node_feat"])
    np.testing.assert_array_equal(molecule.bond_index, expected["edge_index"])
    np.testing.assert_array_equal(molecule.bonds, expected["edge_feat"])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != ".lock"}


class TestGraphs:
    @pytest.mark.parametrize("smiles", VARIED)
    def test_equal_ogb(self, smiles: str) -> None:
        assert_is_ogb(Molecule.from_smiles(smiles), smiles)

    def test_the_number_of_values_is_that_of_ogb(self) -> None:
        from ogb.utils.features import get_atom_feature_dims, get_bond_feature_dims

        assert list(ATOM_FEATURES.values()) == get_atom_feature_dims()
        assert list(BOND_FEATURES.values()) == get_bond_feature_dims()

    @pytest.mark.parametrize("table", [QM9_GAP, PCQM4MV2_2K], ids=lambda table: table.name)
    def test_real_molecules_equal_ogb(self, table: Any) -> None:
        if not (DATA / table.file).is_file():
            pytest.skip(f"{table.file} is not in {DATA}")
        for row in list(table.table(DATA).rows())[:: table.num_rows // 300]:
            assert_is_ogb(Molecule.from_smiles(row.smiles), row.smiles)

    @pytest.mark.parametrize(
        ("smiles", "reason"),
        [
            ("", "empty"),
            ("C(C)(C)(C)(C)C", "valence for atom # 0 C, 5"),
            ("c1cccc1", "kekulize"),
            ("not a molecule", "cannot be parsed"),
            ("C1CC", "cannot be parsed"),
        ],
    )
    def test_unreadable_smiles_come_with_the_reason(self, smiles: str, reason: str) -> None:
        with pytest.raises(UnreadableMoleculeError, match=reason):
            smiles_to_graph(smiles)

    def test_large_molecules(self) -> None:
        assert len(smiles_to_graph("C" * 1500).bonds) == 1499
        with pytest.raises(UnreadableMoleculeError, match="70000 atoms, more than the limit of 65535"):
            smiles_to_graph("C" * 70_000)
        with pytest.raises(UnreadableMoleculeError, match="3 atoms, more than the limit of 2"):
            smiles_to_graph("CCO", max_atoms=2)

    def test_fingerprint_is_the_customary_one(self) -> None:
        from rdkit import Chem, rdBase
        from rdkit.Chem import rdMolDescriptors

        for smiles in VARIED:
            with rdBase.BlockLogs():  # the old function says that it is old
                bits = rdMolDescriptors.GetMorganFingerprintAsBitVect(Chem.MolFromSmiles(smiles), 2, nBits=2048)
            assert fingerprint(smiles).nonzero()[0].tolist() == list(bits.GetOnBits())


class TestTable:
    def test_reads_quotes_blank_lines_and_a_byte_order_mark(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        path.write_bytes('\ufeffsmiles,"a, b"\r\nCC ,"1"\r\n\r\n"C\nname",2e-1\r\n'.encode())
        rows = list(MoleculeTable(path, "smiles", (Target("a, b", scale=10.0),)).rows())
        assert rows == [SmilesRow(0, "CC", (10.0,)), SmilesRow(1, "C\nname", (2.0,))]

    def test_knows_gzip_by_its_bytes(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        path.write_bytes(gzip.compress(b"smiles\nCC\nO\n"))
        assert [row.smiles for row in MoleculeTable(path).rows()] == ["CC", "O"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty: expected a header"),
            ("\n\n", "is empty: expected a header"),
            ("smiles,gap\n", "header but no rows"),
            ("mol,gap\nC,1\n", "no column 'smiles'; its columns are 'mol', 'gap'"),
            ("smiles,energy\nC,1\n", "no column 'gap'"),
            ("smiles,gap,gap\nC,1,2\n", "more than one column 'gap'"),
            ("smiles,gap\nC,1\nCC,nan\n", r"row 1 \(line 3\) of t.csv: target 'gap' is missing \('nan'\)"),
            ("smiles,gap\nC,1\n\nCC,\n", r"row 1 \(line 4\).*missing"),
            ("smiles,gap\nC,high\n", r"row 0 .*'high', expected a finite number"),
            ("smiles,gap\nC,inf\n", r"row 0 .*'inf', expected a finite number"),
            ("smiles,gap\nC,1\nC\n", r"row 1 \(line 3\) of t.csv has 1 cells, expected 2"),
        ],
    )
    def test_refuses_what_is_wrong_with_the_row(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "t.csv"
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            MoleculeTable(path, "smiles", (Target("gap"),)).count()

    def test_refuses_a_cut_off_file_and_other_encodings(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress(b"smiles\n" + os.urandom(4000).hex().encode())[:-200])
        with pytest.raises(ValueError, match="cut off or damaged"):
            MoleculeTable(path).count()
        path.write_bytes(b"smiles\nC\n\xff\xfe\n")
        with pytest.raises(ValueError, match="not UTF-8"):
            MoleculeTable(path).count()

    def test_keeps_missing_targets_when_asked(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        path.write_text("smiles,a,b\nC,1,\nCC,NaN,2\n")
        table = MoleculeTable(path, "smiles", (Target("b"), Target("a")), keep_missing=True)
        np.testing.assert_array_equal([row.targets for row in table.rows()], [[np.nan, 1], [2, np.nan]])

    def test_refuses_a_column_used_twice(self) -> None:
        with pytest.raises(ValueError, match="must differ"):
            MoleculeTable(Path("t.csv"), "smiles", (Target("smiles"),))


class TestSplits:
    @pytest.mark.parametrize("named", [QM9_GAP, PCQM4MV2_2K], ids=lambda table: table.name)
    def test_never_change(self, named: Any) -> None:
        digests = {"qm9": "f48bf8e159b44a6f", "pcqm4mv2_2k": "8d34f9ed78af0f19"}
        split = named.split()
        assert [len(rows) for rows in split.values()] == [
            named.train,
            named.valid,
            named.num_rows - named.train - named.valid,
        ]
        assert np.array_equal(np.sort(np.concatenate(list(split.values()))), np.arange(named.num_rows))
        joined = b"".join(rows.astype("<i8").tobytes() for rows in split.values())
        assert hashlib.sha256(joined).hexdigest()[:16] == digests[named.name]

    def test_refuses_more_rows_than_there_are(self) -> None:
        with pytest.raises(ValueError, match="cannot take 3 training and 2 validation rows of 4"):
            fixed_split(4, 3, 2, "x")


class TestStore:
    @pytest.fixture
    def table(self, tmp_path: Path) -> MoleculeTable:
        return write_table(tmp_path / "t.csv", VARIED)

    def test_gives_every_molecule_back(self, table: MoleculeTable, tmp_path: Path) -> None:
        store = build_store(table, tmp_path / "store", HERE, progress=False)
        assert len(store) == len(VARIED) and store.target_names == ("gap",)
        assert len(store.manifest.shards) == -(-len(VARIED) // 4)
        for index, smiles in enumerate(VARIED):
            molecule = store[index]
            assert_is_ogb(molecule, smiles)
            assert molecule.row == index and molecule.targets.tolist() == [0.5 * index]
            assert molecule.fingerprint is not None
            np.testing.assert_array_equal(np.unpackbits(molecule.fingerprint), fingerprint(smiles))
            assert store.smiles(index) == smiles
        np.testing.assert_array_equal(store.num_atoms(), [len(store[i].atoms) for i in range(len(store))])
        np.testing.assert_array_equal(store.targets()[:, 0], 0.5 * np.arange(len(VARIED)))
        assert store[-1].row == len(VARIED) - 1
        with pytest.raises(IndexError, match=f"molecule {len(VARIED)} of a store"):
            store[len(VARIED)]

    def test_lists_unreadable_rows_and_keeps_the_order(self, tmp_path: Path) -> None:
        smiles = ["C", "xyz", "CC", "", "C(C)(C)(C)(C)C", "CCCC", "O"]
        table = write_table(tmp_path / "t.csv", smiles)
        with TestCase().assertLogs("anyorder", "WARNING") as said:
            store = build_store(table, tmp_path / "store", HERE, progress=False)
        assert "3 of 7 rows" in said.output[0]
        assert store.rows().tolist() == [0, 2, 5, 6]
        written = json.loads((tmp_path / "store" / "manifest.json").read_text())
        assert written["totals"] == {"num_molecules": 4, "num_unreadable": 3}
        assert [(bad.row, bad.smiles) for bad in store.manifest.unreadable] == [(1, "xyz"), (3, ""), (4, smiles[4])]
        assert all(bad.reason for bad in store.manifest.unreadable)
        assert store.locate([6, 1, 0, 5]).tolist() == [3, 0, 2]  # row 1 is listed as unreadable
        with pytest.raises(ValueError, match=r"1 rows are not in the table, which has 7 rows; the first is 7"):
            store.locate([0, 7])

    def test_two_processes_write_the_same_bytes_as_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(molecule_build, "CHUNK_ROWS", 3)
        table = write_table(tmp_path / "t.csv", [*VARIED, "bad", *VARIED])
        one = build_store(table, tmp_path / "one", BuildOptions(workers=0, shard_rows=10), progress=False)
        build_store(table, tmp_path / "two", BuildOptions(workers=2, shard_rows=10), progress=True)
        assert contents(tmp_path / "one") == contents(tmp_path / "two")
        assert len(one) == 2 * len(VARIED)

    def test_continues_after_an_interruption(
        self, table: MoleculeTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = build_store(table, tmp_path / "whole", HERE, progress=False)
        folder = tmp_path / "store"

        def write_two(to: Path, number: int, *rest: Any) -> Any:
            if number == 2:
                (to / "shard-00002.atoms.tmp").write_bytes(b"half a f")
                raise KeyboardInterrupt
            return write_shard(to, number, *rest)

        monkeypatch.setattr(molecule_build, "write_shard", write_two)
        with pytest.raises(KeyboardInterrupt):
            build_store(table, folder, HERE, progress=False)
        with pytest.raises(FileNotFoundError, match="no finished molecule store"):
            MoleculeStore(folder)

        written: list[int] = []

        def note_and_write(to: Path, number: int, *rest: Any) -> Any:
            written.append(number)
            return write_shard(to, number, *rest)

        monkeypatch.setattr(molecule_build, "write_shard", note_and_write)
        build_store(table, folder, HERE, progress=False)
        assert written == list(range(2, len(whole.manifest.shards)))
        assert contents(folder) == contents(tmp_path / "whole")
        build_store(table, folder, HERE, progress=False)
        assert len(written) == len(whole.manifest.shards) - 2  # a finished store is only opened

    def test_survives_a_killed_process(self, tmp_path: Path) -> None:
        table = write_table(tmp_path / "t.csv", VARIED * 2)
        code = (
            "import os, sys; from pathlib import Path; from anyorder.experiments.molecules import build as b\n"
            "from anyorder.experiments.molecules.data import *\n"
            "real = b.write_shard\n"
            "b.write_shard = lambda to, n, *rest: os.kill(os.getpid(), 9) if n == 3 else real(to, n, *rest)\n"
            "table = MoleculeTable(Path(sys.argv[1]), 'smiles', (Target('gap'),))\n"
            "build_store(table, Path(sys.argv[2]), BuildOptions(workers=0, shard_rows=4), progress=False)"
        )
        run = subprocess.run([sys.executable, "-c", code, str(table.path), str(tmp_path / "store")], check=False)
        assert run.returncode == -9
        assert (tmp_path / "store" / "shard-00002.json").is_file()
        assert not (tmp_path / "store" / "manifest.json").exists()
        build_store(table, tmp_path / "store", HERE, progress=False)
        build_store(table, tmp_path / "whole", HERE, progress=False)
        assert contents(tmp_path / "store") == contents(tmp_path / "whole")

    def test_finds_and_repairs_damage(self, table: MoleculeTable, tmp_path: Path) -> None:
        folder = tmp_path / "store"
        build_store(table, folder, HERE, progress=False)
        before = contents(folder)
        damaged = folder / "shard-00001.atoms.npy"
        damaged.write_bytes(before[damaged.name][:-1] + b"\xff")
        MoleculeStore(folder, verify=False)  # the size is right: only checksums can tell
        with pytest.raises(InputError, match=r"damaged: .*shard-00001.atoms.npy does not have the SHA-256"):
            MoleculeStore(folder)
        build_store(table, folder, HERE, progress=False)
        assert contents(folder) == before
        damaged.write_bytes(b"")
        with pytest.raises(ValueError, match="has 0 bytes, expected"):
            MoleculeStore(folder)
        build_store(table, folder, HERE, progress=False)
        assert contents(folder) == before

    def test_a_manifest_that_names_other_targets_than_the_arrays_have(self, table: MoleculeTable, tmp_path: Path) -> None:
        folder = tmp_path / "store"
        build_store(table, folder, HERE, progress=False)
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text())
        manifest["job"]["source"]["targets"].append({"column": "other"})
        path.write_text(json.dumps(manifest))
        with pytest.raises(InputError, match=r"targets.npy: expected shape \(\d+, 2\), got \(\d+, 1\)"):
            MoleculeStore(folder).targets()

    def test_refuses_the_folder_of_another_job(self, table: MoleculeTable, tmp_path: Path) -> None:
        folder = tmp_path / "store"
        build_store(table, folder, HERE, progress=False)
        again = build_store(table, folder, BuildOptions(workers=0, shard_rows=9, fingerprints=False), progress=False)
        assert again.manifest.job["shard_rows"] == 4  # what is there already has what was asked for
        other = write_table(tmp_path / "other.csv", ["CCO"])
        with pytest.raises(FileExistsError, match=r"another job .differing in source"):
            build_store(other, folder, HERE, progress=False)
        assert len(build_store(other, folder, HERE, overwrite=True, progress=False)) == 1
        assert len(list(folder.glob("shard-*.json"))) == 1
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").write_text("precious")
        with pytest.raises(FileExistsError, match="is not empty and holds no molecule store"):
            build_store(table, tmp_path / "mine", HERE, progress=False)

    def test_refuses_a_column_without_molecules(self, tmp_path: Path) -> None:
        table = MoleculeTable(write_table(tmp_path / "t.csv", ["C", "CC"] * 4).path, "id")
        for _ in range(2):  # also when the shards of the first try are there
            with pytest.raises(ValueError, match=r"none of 4 cells in column 'id' .*row 0 is 'm0': not SMILES"):
                build_store(table, tmp_path / "store", HERE, progress=False)
        with pytest.raises(FileNotFoundError, match="no table"):
            build_store(MoleculeTable(tmp_path / "absent.csv"), tmp_path / "store", HERE)

    def test_reads_no_further_ahead_than_its_window(self) -> None:
        read, convert = 0, partial(convert_rows, num_targets=0)

        def chunks() -> Iterator[list[SmilesRow]]:
            nonlocal read
            for number in range(40):
                read += 1
                yield [SmilesRow(number, "C", ())]

        for done, (chunk, _) in enumerate(molecule_build._in_parallel(convert, chunks(), 1)):
            assert chunk[0].row == done
            assert read - done <= 5
        assert read == 40

    def test_loader_workers_open_the_store_themselves(self, table: MoleculeTable, tmp_path: Path) -> None:
        from torch.utils.data import DataLoader

        store = build_store(table, tmp_path / "store", HERE, progress=False)
        store[0]
        assert len(pickle.dumps(store)) < 20_000 and pickle.loads(pickle.dumps(store))._maps == {}
        loader: Any = DataLoader(cast(Any, store), batch_size=None, num_workers=2, collate_fn=attrgetter("row"))
        assert list(loader) == list(range(len(VARIED)))

    def test_needs_no_torch(self) -> None:
        code = "import sys, anyorder.experiments.molecules.data; sys.exit('torch' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    def test_any_table_with_fractions_for_validation_and_test(self, table: MoleculeTable, tmp_path: Path) -> None:
        data = open_table(table, tmp_path / "store", HERE, valid=0.2, test=0.1, progress=False)
        assert {part: len(members) for part, members in data.split.items()} == {"train": 16, "valid": 4, "test": 2}

    def test_real_table_with_its_fixed_split(self, tmp_path: Path) -> None:
        if not (DATA / PCQM4MV2_2K.file).is_file():
            pytest.skip(f"{PCQM4MV2_2K.file} is not in {DATA}")
        data = open_named(PCQM4MV2_2K, DATA, tmp_path, BuildOptions(workers=0), progress=False)
        assert {part: len(members) for part, members in data.split.items()} == {"train": 1600, "valid": 200, "test": 199}
        assert not data.store.manifest.unreadable
        assert abs(data.store.targets().mean() - 5.16) < 0.01  # as the README of the data says


class TestOfficialFolder:
    """A folder as OGB lays it out, made of a few molecules, through the code that reads the real one."""

    def make(self, root: Path, parts: dict[str, list[int]], gaps: list[Any], name: str) -> Path:
        folder = root / name
        (folder / "raw").mkdir(parents=True)
        lines = ["idx,smiles,homolumogap"]
        lines += [f"{i},{smiles},{gap}" for i, (smiles, gap) in enumerate(zip(VARIED, gaps, strict=False))]
        (folder / "raw" / "data.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
        torch.save({part: np.array(rows) for part, rows in parts.items()}, folder / "split_dict.pt")
        return folder

    @pytest.mark.parametrize(
        ("name", "parts"),
        [
            ("pcqm4m_kddcup2021", {"train": [0, 3, 1], "valid": [4], "test": [2, 5]}),
            ("pcqm4m-v2", {"train": [0, 3, 1], "valid": [4], "test-dev": [2], "test-challenge": [5]}),
        ],
    )
    def test_loads(self, tmp_path: Path, name: str, parts: dict[str, list[int]]) -> None:
        gaps = [3.0476751256, 4.41, "", 5.0, 6.0, "nan"]
        folder = self.make(tmp_path / "ogb", parts, gaps, name)
        data = open_pcqm4m(tmp_path / "ogb", tmp_path / "cache", HERE, progress=False)
        assert {part: members.tolist() for part, members in data.split.items()} == parts
        assert data.store[0].targets.tolist() == [3.0476751256]
        assert np.isnan(data.store[2].targets[0]) and np.isnan(data.store[5].targets[0])
        for index in range(6):
            assert_is_ogb(data.store[index], VARIED[index])
        assert len(open_pcqm4m(folder, tmp_path / "cache", HERE, progress=False).store) == 6

    def test_refuses_training_molecules_without_a_gap(self, tmp_path: Path) -> None:
        self.make(tmp_path, {"train": [0, 2], "valid": [1]}, [1.0, 2.0, ""], "pcqm4m-v2")
        with pytest.raises(ValueError, match=r"1 molecules of the part 'train' have no homolumogap; the first is row 2"):
            open_pcqm4m(tmp_path, tmp_path / "cache", HERE, progress=False)

    def test_refuses_other_folders(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="no PCQM4M dataset in"):
            open_pcqm4m(tmp_path, tmp_path / "cache")

    def test_reads_splits_written_with_numpy_1(self, tmp_path: Path) -> None:
        new, old = tmp_path / "new.pt", tmp_path / "old.pt"
        torch.save({"train": np.array([2, 0]), "valid": np.array([1])}, new)
        with zipfile.ZipFile(new) as source, zipfile.ZipFile(old, "w") as target:
            for entry in source.infolist():
                content = source.read(entry).replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")
                target.writestr(entry, content)
        assert b"cnumpy.core.multiarray\n" in old.read_bytes()
        assert load_split(old)["train"].tolist() == load_split(new)["train"].tolist() == [2, 0]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (b"X\x02\x00\x00\x00i8", b"X\x02\x00\x00\x00O8"),
            (b"X\x01\x00\x00\x00<", b"X\x01\x00\x00\x00q"),
            (b"K\x02\x85", b"K\x09\x85"),
        ],
    )
    def test_damaged_states_of_arrays_are_refused(self, tmp_path: Path, one: bytes, other: bytes) -> None:
        """Numpy's own functions would end the process on some of them."""
        torch.save({"train": np.array([2, 0]), "valid": np.array([1, 3])}, tmp_path / "new.pt")
        with zipfile.ZipFile(tmp_path / "new.pt") as source, zipfile.ZipFile(tmp_path / "s.pt", "w") as target:
            for entry in source.infolist():
                target.writestr(entry, source.read(entry).replace(one, other))
        assert one in (tmp_path / "new.pt").read_bytes()
        with pytest.raises(InputError, match=r"s\.pt"):
            load_split(tmp_path / "s.pt")

    def test_runs_no_code_from_a_split(self, tmp_path: Path) -> None:
        class Evil:
            def __reduce__(self) -> Any:
                return os.mkdir, (str(tmp_path / "ran"),)

        torch.save({"train": Evil(), "valid": np.array([1])}, tmp_path / "split_dict.pt")
        with pytest.raises(InputError, match=r"split_dict.pt .* which is not run"):
            load_split(tmp_path / "split_dict.pt")
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize(
        ("split", "message"),
        [
            ({"train": [0, 1], "valid": [1]}, "row 1 occurs 2 times"),
            ({"train": [0, -1], "valid": [2]}, "the smallest row is -1"),
            ({"train": [0]}, "must hold a dict with the parts train and valid, got a dict with .'train'."),
        ],
    )
    def test_refuses_bad_splits(self, tmp_path: Path, split: dict[str, list[int]], message: str) -> None:
        torch.save({part: np.array(rows) for part, rows in split.items()}, tmp_path / "s.pt")
        with pytest.raises(ValueError, match=message):
            load_split(tmp_path / "s.pt")
