"""The registry, the data folder, and the data commands."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from anyorder.cli import main
from anyorder.datasets import download, fetch, registry, verify
from anyorder.datasets.commands import add_command, add_commands
from anyorder.datasets.entries import DataFile, Dataset
from anyorder.datasets.prepare import MAKERS
from anyorder.datasets.registry import DATASETS, data_dir, dataset, locate
from data_folder import DATA

OF_THE_PAPER = {"chains", "delaunay", "jets", "dhne_hyperedges", "pcqm4m_kddcup2021"}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test may read or write the user's own data."""
    monkeypatch.setenv("ANYORDER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "data"


def real_data(name: str = "") -> Path:
    if not (DATA / name).is_dir():
        pytest.skip(f"no real datasets in {DATA / name}: set ANYORDER_DATA to a folder that has some")
    return DATA


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def entry(**values: object) -> Dataset:
    texts = dict.fromkeys(("title", "task", "licence", "source", "citation"), "-")
    return Dataset(**{"name": "tiny", **texts, **values})  # type: ignore[arg-type]


class TestEntries:
    def test_every_dataset_of_the_paper_is_known(self) -> None:
        assert set(DATASETS) >= OF_THE_PAPER

    @pytest.mark.parametrize("known", DATASETS.values(), ids=lambda known: known.name)
    def test_every_entry_says_what_a_user_needs(self, known: Dataset) -> None:
        assert all((known.title, known.task, known.licence, known.source, known.citation))
        assert known.generated == (known.source == "generated")
        assert known.make is None or known.make in MAKERS
        if known.make == "gzip":
            assert {file.path for file in known.files} == {file.path + ".gz" for file in known.originals}

    @pytest.mark.parametrize("path", ["", "/etc/passwd", "../up", "a/../../up", "a\\b"])
    def test_a_path_stays_inside(self, path: str) -> None:
        with pytest.raises(ValueError, match="stay inside"):
            DataFile(path)

    @pytest.mark.parametrize(
        "values",
        [{"url": "file:///etc/passwd"}, {"size": -1}, {"sha256": "abc"}, {"sha256": "A" * 64}, {"content": True}],
    )
    def test_illegal_files_cannot_be_built(self, values: dict[str, object]) -> None:
        with pytest.raises(ValueError, match=r"data\.bin: "):
            DataFile("data.bin", **values)  # type: ignore[arg-type]

    def test_illegal_datasets_cannot_be_built(self) -> None:
        with pytest.raises(ValueError, match="path of its own"):
            entry(files=(DataFile("a"), DataFile("a")))
        with pytest.raises(ValueError, match="come together"):
            entry(files=(DataFile("a"),), make="gzip")

    def test_a_size_is_known_when_all_are(self) -> None:
        assert entry(files=(DataFile("a", size=2), DataFile("b", size=3))).size == 5
        assert entry(files=(DataFile("a", size=2), DataFile("b"))).size is None


class TestFolders:
    def test_argument_then_environment_then_cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert data_dir(tmp_path / "given") == tmp_path / "given"
        assert data_dir() == tmp_path / "data"
        monkeypatch.setenv("ANYORDER_DATA", "")
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        assert data_dir() == tmp_path / "cache" / "anyorder" / "data"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert data_dir() == tmp_path / ".cache" / "anyorder" / "data"
        monkeypatch.setattr(sys, "platform", "darwin")
        assert data_dir() == tmp_path / "Library" / "Caches" / "anyorder" / "data"

    def test_an_unknown_name_gets_the_nearest(self) -> None:
        with pytest.raises(ValueError, match="did you mean 'delaunay'"):
            dataset("Delauny")
        with pytest.raises(ValueError, match=r"unknown dataset 'zzzz': `anyorder"):
            dataset("zzzz")

    def test_locate_says_what_to_put_where(self, own_folder: Path) -> None:
        with pytest.raises(FileNotFoundError) as caught:
            locate("jets")
        message = str(caught.value)
        assert "anyorder data get jets" in message
        assert str(own_folder / "jets" / "valid_data.root") in message
        assert "https://zenodo.org/records/4044628" in message
        with pytest.raises(FileNotFoundError, match="anyorder data simulate jets --data-dir"):
            locate("jets_simulated", data_dir=own_folder / "other")
        with pytest.raises(FileNotFoundError, match=r"pip download .*originals qm9pack"):
            locate("qm9")

    def test_locate_needs_only_the_part_asked_for(self, own_folder: Path) -> None:
        folder = own_folder / "dhne_hyperedges" / "GPS"
        folder.mkdir(parents=True)
        for name in ("train_data.npz", "test_data.npz"):
            (folder / name).touch()
        assert locate("dhne_hyperedges", part="GPS") == folder
        assert locate("dhne_hyperedges", part="GPS/test_data.npz") == folder / "test_data.npz"
        with pytest.raises(FileNotFoundError, match="2 of 8 files"):
            locate("dhne_hyperedges", part="drug")
        with pytest.raises(ValueError, match=r"no part 'gps': did you mean 'GPS'\?"):
            locate("dhne_hyperedges", part="gps")

    def test_generated_datasets_have_no_folder(self) -> None:
        with pytest.raises(ValueError, match="generated while it is used"):
            locate("chains")

    def test_real_files_are_the_registered_ones(self) -> None:
        root = real_data()
        reports = {name: verify.check(name, data_dir=root) for name in DATASETS}
        assert not [report for all_of_one in reports.values() for report in all_of_one if report.wrong]
        whole = [name for name, of_one in reports.items() if of_one and all(report.good for report in of_one)]
        if not whole:
            pytest.skip(f"{root} holds no complete dataset")
        assert [locate(name, data_dir=root) for name in whole] == [root / name for name in whole]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server of a folder on the loopback interface."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    folder = tmp_path / "site"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/", folder
        running.shutdown()
        thread.join()


def register(monkeypatch: pytest.MonkeyPatch, known: Dataset) -> None:
    monkeypatch.setitem(registry.DATASETS, known.name, known)


def data(*words: str) -> int:
    return main(["data", *words])


class TestCommands:
    def test_list(self, capsys: pytest.CaptureFixture[str], own_folder: Path) -> None:
        assert data("list") == 0
        text = capsys.readouterr().out
        assert str(own_folder) in text
        assert all(name in text for name in DATASETS)

    def test_list_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert data("list", "--format", "json") == 0
        known = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
        assert known["chains"]["here"] == "generated"
        assert known["dhne_hyperedges"]["here"] == "no"
        assert known["dhne_hyperedges"]["size"] == 9197376
        assert len(known["dhne_hyperedges"]["files"][0]["sha256"]) == 64

    def test_where(self, capsys: pytest.CaptureFixture[str], own_folder: Path) -> None:
        assert data("where") == data("where", "jets") == data("where", "--data-dir", "/x") == 0
        assert capsys.readouterr().out.split() == [str(own_folder), str(own_folder / "jets"), "/x"]

    @pytest.mark.parametrize("command", ["get", "check", "where"])
    def test_unknown_names_are_refused(self, command: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert data(command, "jets_alise") == 1
        assert "did you mean 'jets_alice'" in capsys.readouterr().err

    def test_get_check_and_what_can_go_wrong(
        self,
        site: tuple[str, Path],
        own_folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        address, published = site
        (published / "known").write_bytes(b"known content")
        (published / "unknown").write_bytes(b"whatever")
        files = (
            DataFile("sub/known", url=address + "known", size=13, sha256=sha256(b"known content")),
            DataFile("unknown", url=address + "unknown"),
        )
        register(monkeypatch, entry(files=files))
        assert data("check", "tiny") == 1
        assert data("get", "tiny", "--quiet") == 0
        assert "no checksum is published for unknown; recorded" in capsys.readouterr().out
        assert verify.recorded(own_folder / "tiny") == {"unknown": sha256(b"whatever")}
        assert data("check", "tiny") == 0
        (own_folder / "tiny" / "unknown").write_bytes(b"damaged!")
        assert data("check", "tiny") == 1
        assert "wrong checksum  unknown" in capsys.readouterr().out
        assert data("get", "tiny", "--quiet") == 1
        assert "--force" in capsys.readouterr().err
        assert (own_folder / "tiny" / "unknown").read_bytes() == b"damaged!"
        assert data("get", "tiny", "--quiet", "--force") == 0
        assert data("check", "tiny") == 0

    def test_files_put_by_hand_are_as_good(self, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        register(monkeypatch, entry(files=(DataFile("a", url="http://127.0.0.1:9/a", sha256=sha256(b"mine")),)))
        (own_folder / "tiny").mkdir(parents=True)
        (own_folder / "tiny" / "a").write_bytes(b"mine")
        assert data("get", "tiny") == data("check", "tiny") == 0

    def test_offline_lists_every_missing_file(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], own_folder: Path
    ) -> None:
        monkeypatch.setattr(fetch, "download", partial(download.download, attempts=1))
        register(monkeypatch, entry(files=tuple(DataFile(name, url=f"http://127.0.0.1:9/{name}") for name in "ab")))
        assert data("get", "tiny", "--quiet") == 1
        message = capsys.readouterr().err
        assert "could not download" in message
        assert all(str(own_folder / "tiny" / name) in message for name in "ab")

    def test_originals_are_gzipped(self, site: tuple[str, Path], own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (site[1] / "table.csv").write_bytes(b"1,2\n")
        facts = {"size": 4, "sha256": sha256(b"1,2\n")}
        register(
            monkeypatch,
            entry(
                files=(DataFile("t/table.csv.gz", content=True, **facts),),  # type: ignore[arg-type]
                originals=(DataFile("t/table.csv", url=site[0] + "table.csv", **facts),),  # type: ignore[arg-type]
                make="gzip",
            ),
        )
        assert data("get", "tiny", "--quiet") == data("check", "tiny") == 0
        assert gzip.decompress((own_folder / "tiny" / "t" / "table.csv.gz").read_bytes()) == b"1,2\n"
        assert [path.name for path in (own_folder / "tiny").iterdir()] == ["t"]
        (own_folder / "tiny" / "t" / "table.csv.gz").write_bytes(b"damaged")
        assert data("check", "tiny") == 1

    def test_an_archive_is_unpacked_and_recorded(
        self, site: tuple[str, Path], own_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with zipfile.ZipFile(site[1] / "tiny.zip", "w") as archive:
            archive.writestr("tiny/raw/data.csv.gz", gzip.compress(b"idx"))
            archive.writestr("tiny/split_dict.pt", b"split")
        register(
            monkeypatch,
            entry(
                files=(DataFile("raw/data.csv.gz"), DataFile("split_dict.pt")),
                originals=(DataFile("tiny.zip", url=site[0] + "tiny.zip"),),
                make="unpack",
            ),
        )
        assert data("get", "tiny", "--quiet") == 0
        assert sorted(path.name for path in (own_folder / "tiny").iterdir()) == ["SHA256SUMS", "raw", "split_dict.pt"]
        assert {report.state for report in verify.check("tiny")} == {"ok"}

    def test_an_archive_without_the_files_changes_nothing(
        self,
        site: tuple[str, Path],
        own_folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        with zipfile.ZipFile(site[1] / "tiny.zip", "w") as archive:
            archive.writestr("tiny/other", b"")
        originals = (DataFile("tiny.zip", url=site[0] + "tiny.zip"),)
        register(monkeypatch, entry(files=(DataFile("split_dict.pt"),), originals=originals, make="unpack"))
        assert data("get", "tiny", "--quiet") == 1
        assert "did not give the files expected: split_dict.pt: missing" in capsys.readouterr().err
        assert [path.name for path in (own_folder / "tiny").iterdir()] == ["originals"]

    def test_an_original_put_by_hand_stays(self, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        originals = (DataFile("a.txt", url="http://127.0.0.1:9/a.txt", sha256=sha256(b"text")),)
        register(monkeypatch, entry(files=(DataFile("a.txt.gz"),), originals=originals, make="gzip"))
        (own_folder / "tiny" / "originals").mkdir(parents=True)
        (own_folder / "tiny" / "originals" / "a.txt").write_bytes(b"text")
        assert data("get", "tiny") == 0
        assert (own_folder / "tiny" / "originals" / "a.txt").exists()

    def test_further_commands_are_added_in_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        parser = argparse.ArgumentParser(prog="anyorder")
        commands = add_commands(parser.add_subparsers(required=True))
        add_command(commands, "simulate", lambda args: print(args.data_dir) or 0, "simulate a dataset")
        args = parser.parse_args(["data", "simulate", "--data-dir", "here"])
        assert args.run(args) == 0
        assert capsys.readouterr().out == "here\n"


def test_prepared_molecules_are_the_registered_ones(own_folder: Path) -> None:
    """The published rows, with the line ends of the source, give the registered files."""
    pytest.importorskip("rdkit")
    real = locate("pcqm4mv2_2k", part="pcqm4mv2-2k_original_cxsmiles.csv.gz", data_dir=real_data("pcqm4mv2_2k"))
    originals = own_folder / "pcqm4mv2_2k" / "originals"
    originals.mkdir(parents=True)
    published = gzip.decompress(real.read_bytes()).replace(b"\n", b"\r\n")
    (originals / "pcqm4mv2-2k.csv").write_bytes(published)
    fetch.fetch("pcqm4mv2_2k", say=lambda text: None)
    assert {report.state for report in verify.check("pcqm4mv2_2k")} == {"ok"}


def test_qm9_is_joined_from_its_parts(tmp_path: Path) -> None:
    header = (
        "Index,SMILES,InChi,N_atoms,Dipole_debye,Polarizability_bohr3,HOMO_au,LUMO_au,HOMO_LUMO_gap_au,R2_bohr2,ZPVE_au,"
        "InternalEnergy_0K_au,InternalEnergy_298K_au,Enthalphy_298K_au,GibbsFreeEnergy_298K_au,Heatcapacity_Cv_cal_mol_K"
    )
    with zipfile.ZipFile(tmp_path / "qm9pack-1.0.3-py3-none-any.whl", "w") as package:
        for part in (1, 2, 3):
            row = f'{part},"C{part}","dropped",5,0.,1.50,' + ",".join(["-1"] * 10)
            package.writestr(f"qm9pack/data/qm9_part{part}.csv", f"{header}\n{row}\n")
    MAKERS["qm9"](dataset("qm9"), tmp_path, tmp_path)
    lines = gzip.decompress((tmp_path / "qm9.csv.gz").read_bytes()).decode().splitlines()
    assert lines[0].startswith("index,smiles,n_atoms,mu_debye")
    assert lines[1:] == [f"{part},C{part},5,0.0,1.5," + ",".join(["-1.0"] * 10) for part in (1, 2, 3)]
