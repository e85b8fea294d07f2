"""Downloads and unpacking, against a server on the loopback interface that misbehaves on demand."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tarfile
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from anyorder.datasets.download import DownloadError, UnsafeArchiveError, download, unpack
from anyorder.errors import InputError

PAYLOAD = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(PAYLOAD).hexdigest()


@dataclass
class Behaviour:
    """What the server does; tests change it, and read what was asked."""

    payload: bytes = PAYLOAD
    ranges: bool = True
    etag: str | None = '"one"'
    length: bool = True
    cut_after: int | None = None
    failures: int = 0
    failure_status: int = 503
    redirect: str | None = None
    asked: list[dict[str, str]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    behaviour: Behaviour

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        does = self.behaviour
        does.asked.append(dict(self.headers.items()))
        if does.redirect and self.path == "/file":
            self.send_response(302)
            self.send_header("Location", does.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif does.failures:
            does.failures -= 1
            self.send_response(does.failure_status)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.answer(does)

    def answer(self, does: Behaviour) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        fresh = self.headers.get("If-Range", does.etag) == does.etag
        start = int(asked[1]) if asked and does.ranges and fresh else 0
        total = len(does.payload)
        if start and start >= total:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{total}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        if does.etag:
            self.send_header("ETag", does.etag)
        if does.length:
            self.send_header("Content-Length", str(total - start))
        self.end_headers()
        body = does.payload[start:]
        if does.cut_after is not None:
            body, does.cut_after = body[: does.cut_after], None
        self.wfile.write(body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Behaviour]]:
    monkeypatch.setenv("no_proxy", "*")
    behaviour = Behaviour()
    handler = type("Bound", (Handler,), {"behaviour": behaviour})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/file", behaviour
        running.shutdown()
        thread.join()


def get(url: str, path: Path, *, sha256: str | None = SHA256, **options: int) -> str:
    return download(url, path, sha256=sha256, backoff=0.0, progress=False, timeout=5.0, **options)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestDownload:
    def test_brings_the_file_and_nothing_else(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        url, _ = server
        target = tmp_path / "new" / "folder" / "data.bin"
        assert get(url, target, size=len(PAYLOAD)) == SHA256
        assert target.read_bytes() == PAYLOAD
        assert names(target.parent) == ["data.bin"]

    def test_shows_a_progress_bar(
        self, server: tuple[str, Behaviour], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        download(server[0], tmp_path / "data.bin", sha256=SHA256)
        captured = capsys.readouterr()
        assert "data.bin" in captured.err
        assert captured.out == ""

    @pytest.mark.parametrize(
        "known", ["[" * 5000, '{"url": URL, "validator": [1]}', '{"url": URL, "validator": "a\\nb: c"}', "[]"]
    )
    def test_a_damaged_word_on_a_part_is_not_believed(
        self, server: tuple[str, Behaviour], known: str, tmp_path: Path
    ) -> None:
        url, does = server
        (tmp_path / "data.bin.part").write_bytes(PAYLOAD[:1000])
        (tmp_path / "data.bin.part.json").write_text(known.replace("URL", json.dumps(url)))
        get(url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == PAYLOAD
        assert does.asked[0].get("If-Range") is None and names(tmp_path) == ["data.bin"]

    def test_resumes_within_one_call(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        url, does = server
        does.cut_after = 100_000
        get(url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == PAYLOAD
        assert [headers.get("Range") for headers in does.asked] == [None, "bytes=100000-"]
        assert does.asked[1]["If-Range"] == '"one"'

    def test_resumes_in_the_next_run(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        url, does = server
        does.cut_after = 70_000
        with pytest.raises(DownloadError, match=r"cut after 70,000 of 512,000 bytes.*run the command again"):
            get(url, tmp_path / "data.bin", attempts=1)
        assert not (tmp_path / "data.bin").exists()
        get(url, tmp_path / "data.bin", attempts=1)
        assert (tmp_path / "data.bin").read_bytes() == PAYLOAD
        assert does.asked[1]["Range"] == "bytes=70000-"
        assert names(tmp_path) == ["data.bin"]

    def test_starts_over_when_the_server_has_no_ranges(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        url, does = server
        does.ranges, does.cut_after = False, 50_000
        get(url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == PAYLOAD
        assert len(does.asked) == 2

    @pytest.mark.parametrize("sha256", [SHA256, None])
    def test_starts_over_when_the_file_changed_meanwhile(
        self, server: tuple[str, Behaviour], tmp_path: Path, sha256: str | None
    ) -> None:
        url, does = server
        does.payload, does.cut_after, does.etag = b"x" * 400_000, 50_000, '"old"'
        with pytest.raises(DownloadError):
            get(url, tmp_path / "data.bin", attempts=1, sha256=sha256)
        does.payload, does.etag = PAYLOAD, '"new"'
        get(url, tmp_path / "data.bin", sha256=sha256)
        assert (tmp_path / "data.bin").read_bytes() == PAYLOAD

    def test_never_joins_parts_without_a_way_to_tell_versions(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        url, does = server
        does.etag, does.cut_after = None, 50_000
        get(url, tmp_path / "data.bin", sha256=None)
        assert all("Range" not in headers for headers in does.asked)
        assert (tmp_path / "data.bin").read_bytes() == PAYLOAD

    def test_a_foreign_part_is_found_out_and_dropped(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        url, does = server
        (tmp_path / "data.bin.part").write_bytes(b"foreign" * 100)
        get(url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == PAYLOAD
        assert [headers.get("Range") for headers in does.asked] == ["bytes=700-", None]

    def test_a_whole_part_is_only_verified(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        url, does = server
        (tmp_path / "data.bin.part").write_bytes(PAYLOAD)
        get(url, tmp_path / "data.bin", size=len(PAYLOAD))
        assert does.asked == []
        (tmp_path / "other.bin.part").write_bytes(PAYLOAD)
        get(url, tmp_path / "other.bin")  # of unknown size: the server answers 416
        assert (tmp_path / "other.bin").read_bytes() == PAYLOAD

    def test_works_without_a_length(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        url, does = server
        does.length = False
        assert get(url, tmp_path / "data.bin", sha256=None) == SHA256

    def test_retries_a_busy_server_but_not_a_missing_file(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        url, does = server
        does.failures = 2
        get(url, tmp_path / "data.bin")
        assert len(does.asked) == 3
        does.failures, does.failure_status = 1, 404
        with pytest.raises(DownloadError, match="HTTP 404"):
            get(url, tmp_path / "gone.bin")
        assert len(does.asked) == 4
        assert names(tmp_path) == ["data.bin"]

    def test_follows_redirects(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        url, does = server
        does.redirect = "/elsewhere"
        get(url, tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == PAYLOAD


class TestRefusals:
    def test_wrong_checksum_leaves_the_earlier_file(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        (tmp_path / "data.bin").write_bytes(b"earlier")
        with pytest.raises(DownloadError, match=r"not the file the registry knows: expected SHA-256 0{64}.*is as it was"):
            get(server[0], tmp_path / "data.bin", sha256="0" * 64)
        assert (tmp_path / "data.bin").read_bytes() == b"earlier"
        assert names(tmp_path) == ["data.bin"]

    def test_wrong_size_is_refused_before_the_transfer(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        with pytest.raises(DownloadError, match="expected 10 bytes, the server offers 512,000"):
            get(server[0], tmp_path / "data.bin", size=10)
        assert names(tmp_path) == []

    @pytest.mark.parametrize("length", [True, False])
    def test_size_is_bounded(self, server: tuple[str, Behaviour], tmp_path: Path, length: bool) -> None:
        url, does = server
        does.length = length
        with pytest.raises(DownloadError, match=r"larger than allowed|sends more than the 100,000 bytes"):
            get(url, tmp_path / "data.bin", max_bytes=100_000)
        assert names(tmp_path) == []

    def test_no_network_says_what_to_put_where(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        with pytest.raises(DownloadError, match="could not download") as caught:
            get("http://127.0.0.1:9/file", tmp_path / "data.bin", attempts=2)
        assert str(tmp_path / "data.bin") in str(caught.value)
        assert SHA256 in str(caught.value)
        assert names(tmp_path) == []

    @pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data.bin"])
    def test_other_schemes(self, url: str, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="http or https"):
            get(url, tmp_path / "data.bin")

    def test_a_folder_that_cannot_be(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(DownloadError, match=r"cannot write to .*file.*--data-dir"):
            get(server[0], tmp_path / "file" / "data.bin")
        assert (tmp_path / "file").read_text() == "not a folder"

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
    def test_a_read_only_folder(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(DownloadError, match="cannot write to"):
                get(server[0], tmp_path / "data.bin")
        finally:
            tmp_path.chmod(0o700)

    def test_a_disk_too_small_is_noticed_first(
        self, server: tuple[str, Behaviour], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usage = shutil.disk_usage(tmp_path)._replace(free=1000)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
        with pytest.raises(DownloadError, match=r"disk of .* is full.*needed: 512,000 bytes, free: 1,000"):
            get(server[0], tmp_path / "data.bin")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
    def test_a_disk_that_fills_up(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        (tmp_path / "data.bin").write_bytes(b"earlier")
        (tmp_path / "data.bin.part").symlink_to("/dev/full")
        with pytest.raises(DownloadError, match=r"disk of .* is full: free some space.*is as it was"):
            get(server[0], tmp_path / "data.bin")
        assert (tmp_path / "data.bin").read_bytes() == b"earlier"

    def test_two_downloads_of_one_file_at_once(self, server: tuple[str, Behaviour], tmp_path: Path) -> None:
        fcntl = pytest.importorskip("fcntl")
        with (tmp_path / "data.bin.part").open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(DownloadError, match="another process"):
                get(server[0], tmp_path / "data.bin")


def write_zip(path: Path, members: dict[str, bytes], *, mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return path


def write_tar(path: Path, members: list[tarfile.TarInfo], content: bytes = b"content") -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for info in members:
            info.size = len(content) if info.isreg() else 0
            archive.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return path


def tar_member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


ESCAPES = ["../escape", "/tmp/escape", "a/../../escape", "a\\..\\escape", "C:escape"]


class TestUnpack:
    def test_zip_with_a_top_folder(self, tmp_path: Path) -> None:
        archive = write_zip(tmp_path / "set.zip", {"set/raw/data.csv": b"1", "set/split.pt": b"2", "set/empty/": b""})
        written = unpack(archive, tmp_path / "set", strip="set")
        assert {path.as_posix() for path in written} == {"raw/data.csv", "split.pt"}
        assert (tmp_path / "set" / "raw" / "data.csv").read_bytes() == b"1"
        assert names(tmp_path / "set") == ["raw", "split.pt"]

    @pytest.mark.parametrize("name", ["set.tar", "set.tar.gz", "set.tgz"])
    def test_tar(self, tmp_path: Path, name: str) -> None:
        members = [tar_member("a", tarfile.DIRTYPE), tar_member("a/b.txt"), tar_member("c.txt")]
        unpack(write_tar(tmp_path / name, members), tmp_path / "out")
        assert (tmp_path / "out" / "a" / "b.txt").read_bytes() == b"content"
        assert names(tmp_path / "out") == ["a", "c.txt"]

    def test_gz(self, tmp_path: Path) -> None:
        (tmp_path / "table.csv.gz").write_bytes(gzip.compress(b"a,b"))
        assert unpack(tmp_path / "table.csv.gz", tmp_path / "out") == (Path("table.csv"),)
        assert (tmp_path / "out" / "table.csv").read_bytes() == b"a,b"

    @pytest.mark.parametrize("name", ESCAPES)
    @pytest.mark.parametrize("kind", ["zip", "tar"])
    def test_members_outside_the_folder(self, tmp_path: Path, name: str, kind: str) -> None:
        archive = (
            write_zip(tmp_path / "bad.zip", {"good": b"1", name: b"2"})
            if kind == "zip"
            else write_tar(tmp_path / "bad.tar", [tar_member("good"), tar_member(name)])
        )
        with pytest.raises(UnsafeArchiveError, match="outside its folder"):
            unpack(archive, tmp_path / "out")
        assert names(tmp_path / "out") == []
        assert names(tmp_path) == [archive.name, "out"]

    @pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
    def test_links_and_devices_in_a_tar(self, tmp_path: Path, kind: bytes) -> None:
        archive = write_tar(tmp_path / "bad.tar.gz", [tar_member("good"), tar_member("bad", kind, "/etc/passwd")])
        with pytest.raises(UnsafeArchiveError, match="link or a device"):
            unpack(archive, tmp_path / "out")
        assert names(tmp_path / "out") == []

    @pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFCHR | 0o600, stat.S_IFIFO | 0o600])
    def test_links_and_devices_in_a_zip(self, tmp_path: Path, mode: int) -> None:
        archive = write_zip(tmp_path / "bad.zip", {"bad": b"/etc/passwd"}, mode=mode)
        with pytest.raises(UnsafeArchiveError, match="link or a device"):
            unpack(archive, tmp_path / "out")
        assert names(tmp_path / "out") == []

    @pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz", "bomb.txt.gz"])
    def test_size_is_bounded(self, tmp_path: Path, name: str) -> None:
        content = bytes(3_000_000)
        path = tmp_path / name
        if name == "bomb.zip":
            write_zip(path, {"bomb": content})
        elif name == "bomb.tar.gz":
            write_tar(path, [tar_member("bomb")], content)
        else:
            path.write_bytes(gzip.compress(content))
        assert path.stat().st_size < 100_000
        with pytest.raises(UnsafeArchiveError, match="more"):
            unpack(path, tmp_path / "out", max_bytes=1_000_000)
        assert names(tmp_path / "out") == []

    def test_the_headers_of_a_tar_are_bounded_too(self, tmp_path: Path) -> None:
        info = tar_member("x")
        info.pax_headers = {"comment": "y" * 3_000_000}
        archive = write_tar(tmp_path / "bomb.tar.gz", [info])
        with pytest.raises(UnsafeArchiveError, match=r"spends 3,000,0.. bytes on the name of a member"):
            unpack(archive, tmp_path / "out", max_bytes=1_000_000, max_members=10)

    @pytest.mark.parametrize("name", ["many.zip", "many.tar"])
    def test_number_of_members_is_bounded(self, tmp_path: Path, name: str) -> None:
        wanted = [f"member{number}" for number in range(11)]
        path = tmp_path / name
        archive = (
            write_zip(path, dict.fromkeys(wanted, b""))
            if name.endswith("zip")
            else write_tar(path, [tar_member(member) for member in wanted])
        )
        with pytest.raises(UnsafeArchiveError, match="more than the 10 members"):
            unpack(archive, tmp_path / "out", max_members=10)
        assert len(unpack(archive, tmp_path / "out", max_members=11)) == 11

    def test_one_name_twice(self, tmp_path: Path) -> None:
        archive = write_tar(tmp_path / "bad.tar", [tar_member("a"), tar_member("A")])
        with pytest.raises(UnsafeArchiveError, match=r"bad\.tar holds 'A' twice"):
            unpack(archive, tmp_path / "out")

    def test_a_file_used_as_a_folder(self, tmp_path: Path) -> None:
        archive = write_tar(tmp_path / "bad.tar", [tar_member("a"), tar_member("a/b")])
        with pytest.raises(UnsafeArchiveError, match="a file and a folder"):
            unpack(archive, tmp_path / "out")

    @pytest.mark.parametrize("name", ["set.zip", "set.tar", "set.tar.gz", "set.gz"])
    def test_a_damaged_archive_changes_nothing(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(b"no archive at all" * 100)
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "earlier").write_bytes(b"1")
        with pytest.raises(ValueError, match="is not the archive its name says, or is damaged"):
            unpack(tmp_path / name, tmp_path / "out")
        assert names(tmp_path / "out") == ["earlier"]

    def test_a_truncated_archive_changes_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "set.tar.gz"
        write_tar(path, [tar_member("a"), tar_member("b")], os.urandom(50_000))
        path.write_bytes(path.read_bytes()[:60_000])
        with pytest.raises(ValueError, match="is not the archive its name says, or is damaged"):
            unpack(path, tmp_path / "out")
        assert names(tmp_path / "out") == []

    def test_a_plain_tar_that_was_cut_off_between_members_changes_nothing(self, tmp_path: Path) -> None:
        path = write_tar(tmp_path / "set.tar", [tar_member("a"), tar_member("b")], bytes(512))
        whole = path.read_bytes()
        path.write_bytes(whole[: 2 * 512])  # the first member and nothing after it
        with pytest.raises(InputError, match="cut off or damaged"):
            unpack(path, tmp_path / "out")
        assert names(tmp_path / "out") == []
        path.write_bytes(whole[: 2 * 512] + b"\x07" * 512 + whole[3 * 512 :])  # the description of the second is damaged
        with pytest.raises(InputError, match="cut off or damaged"):
            unpack(path, tmp_path / "out")

    def test_a_huge_description_in_a_tar_is_not_held_in_memory(self, tmp_path: Path) -> None:
        info = tarfile.TarInfo("././@LongLink")
        info.type, info.size = tarfile.GNUTYPE_LONGNAME, 600_000_000
        path = tmp_path / "set.tar.gz"
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(info.tobuf(tarfile.GNU_FORMAT) + bytes(1_000_000))
        tracemalloc.start()
        with pytest.raises(UnsafeArchiveError, match="spends 600,000,000 bytes"):
            unpack(path, tmp_path / "out")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10_000_000

    def test_other_suffixes(self, tmp_path: Path) -> None:
        (tmp_path / "set.rar").write_bytes(b"")
        with pytest.raises(ValueError, match=r"expected a \.zip"):
            unpack(tmp_path / "set.rar", tmp_path / "out")
