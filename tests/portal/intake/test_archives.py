"""Healthy archives of every format come out byte for byte; damage raises nothing but `ProblemFound`."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.file_names import plain_name
from common.problems import Problem, ProblemFound
from portal.intake.archives.decompression import zstd
from portal.intake.archives.reading import ArchiveLimits, Member, read_archive
from tests.portal.hostile.packing import WAV, ZipEntry, pax_header, tar, tar_file, tar_header, zip_of

Tree = Mapping[str, bytes]


class Unseekable(io.RawIOBase):
    """As a pipe: ``zipfile`` then writes sizes behind the data."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.data += bytes(data)  # type: ignore[call-overload]
        return len(bytes(data))  # type: ignore[call-overload]


def pack_zip(method: int) -> Callable[[Tree], bytes]:
    def pack(tree: Tree) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            for path, data in tree.items():
                archive.writestr(path, data)
        return file.getvalue()

    return pack


def pack_zip_to_pipe(tree: Tree) -> bytes:
    file = Unseekable()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in tree.items():
            archive.writestr(path, data)
    return file.data


def pack_zip64(tree: Tree) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in tree.items():
            with archive.open(path, "w", force_zip64=True) as member:
                member.write(data)
    return file.getvalue()


def pack_tar(form: int, compress: Callable[[bytes], bytes] = bytes) -> Callable[[Tree], bytes]:
    def pack(tree: Tree) -> bytes:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=form) as archive:
            for path, data in tree.items():
                info = tarfile.TarInfo(path)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return compress(file.getvalue())

    return pack


def in_two_streams(compress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: compress(data[:700]) + compress(data[700:])


FORMATS: dict[str, Callable[[Tree], bytes]] = {
    "zip deflated": pack_zip(zipfile.ZIP_DEFLATED),
    "zip bzip2": pack_zip(zipfile.ZIP_BZIP2),
    "zip lzma": pack_zip(zipfile.ZIP_LZMA),
    "zip to a pipe": pack_zip_to_pipe,
    "zip64": pack_zip64,
    "tar gnu": pack_tar(tarfile.GNU_FORMAT),
    "tar pax": pack_tar(tarfile.PAX_FORMAT),
    "tar.gz": pack_tar(tarfile.GNU_FORMAT, gzip.compress),
    "tar.bz2": pack_tar(tarfile.PAX_FORMAT, bz2.compress),
    "tar.xz": pack_tar(tarfile.GNU_FORMAT, lzma.compress),
    "tar.zst": pack_tar(tarfile.PAX_FORMAT, zstd.compress),
    "tar.gz in two streams": pack_tar(tarfile.PAX_FORMAT, in_two_streams(gzip.compress)),
    "tar.zst in two frames": pack_tar(tarfile.GNU_FORMAT, in_two_streams(zstd.compress)),
}
SAMPLE = {"exp/a.wav": WAV * 40, "exp/é/b.txt": b"text\n" * 3000, "empty": b"", "x" * 90 + "/" + "y" * 120: b"long"}


def read_all(path: Path, limits: ArchiveLimits | None = None) -> tuple[dict[str, bytes], list[Problem]]:
    problems: list[Problem] = []
    archive = read_archive(path, name=path.name, limits=limits or ArchiveLimits(), report=problems.append)
    return {member.path: stream.read() for member, stream in archive}, problems


def refusal(content: bytes, path: Path, limits: ArchiveLimits | None = None) -> str:
    path.write_bytes(content)
    with pytest.raises(ProblemFound) as caught:
        read_all(path, limits)
    assert str(caught.value) == caught.value.problem.sentence()
    return caught.value.problem.code


# Healthy ------------------------------------------------------------------------------------------

part = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z", "M"), exclude_characters="/\\:."),
    min_size=1,
    max_size=30,
)
# None begins as an archive does: such a file is reported.
content = st.one_of(
    st.just(b""),
    st.binary(max_size=300).map(lambda data: b"RIFF" + data),
    st.integers(0, 140_000).map(lambda size: bytes(range(251)) * (size // 251)),
)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, bytes]:
    """Numbered so that no two paths are the same, or the folder of another, on any file system; in NFC."""
    paths = draw(st.lists(st.lists(part, min_size=1, max_size=4), min_size=1, max_size=4))
    named = ("/".join([f"{number}{names[0]}", *names[1:]]) for number, names in enumerate(paths))
    return {plain_name(path): draw(content) for path in named}


@pytest.mark.parametrize("form", FORMATS)
@given(tree=trees())
def test_healthy_tree_comes_out_byte_for_byte(form: str, tree: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "team.archive"
    path.write_bytes(FORMATS[form](tree))
    assert read_all(path) == (tree, [])


@pytest.mark.parametrize("form", FORMATS)
def test_sample_comes_out_in_its_order_whatever_was_read_of_it(form: str, tmp_path: Path) -> None:
    path = tmp_path / "team.archive"
    path.write_bytes(FORMATS[form](SAMPLE))
    for size in (0, 1, 1000):
        parts = [
            (member.path, member.size, stream.read(size))
            for member, stream in read_archive(path, name="x", limits=ArchiveLimits(), report=pytest.fail)
        ]
        assert parts == [(name, len(data), data[:size]) for name, data in SAMPLE.items()]


def test_stream_gives_its_bytes_in_pieces_and_ends_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "team.tar"
    path.write_bytes(tar(tar_file("a", b"abcdef"), tar_file("b", b"second")))
    archive = read_archive(path, name="x", limits=ArchiveLimits(), report=pytest.fail)
    member, stream = next(archive)
    assert member == Member("a", 6, path.stat().st_size)
    assert (stream.read(2), stream.read(0), stream.read(3), stream.read(), stream.read(5)) == (
        b"ab",
        b"",
        b"cde",
        b"f",
        b"",
    )
    next(archive)
    with pytest.raises(ValueError, match="closed"):
        stream.read(1)
    archive.close()  # type: ignore[attr-defined]


def test_content_tells_the_format_whatever_the_name(tmp_path: Path) -> None:
    path = tmp_path / "team.zip"
    path.write_bytes(FORMATS["tar.xz"](SAMPLE))
    assert read_all(path)[0] == SAMPLE


def test_leading_dots_folders_and_padding_are_taken_as_they_are_meant(tmp_path: Path) -> None:
    path = tmp_path / "team.tar"
    parts = (tar_header("./", 0, b"5"), tar_header("./a/", 0, b"5"), tar_file("./a/x.wav"))
    path.write_bytes(tar(*parts, end=bytes(20 * 512)))
    assert read_all(path) == ({"a/x.wav": WAV}, [])
    path.write_bytes(gzip.compress(tar(*parts)) + bytes(700))
    assert read_all(path) == ({"a/x.wav": WAV}, [])


def test_pax_header_of_all_and_comment_of_zip_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "team"
    path.write_bytes(tar(pax_header(("comment", "0123abcd"), kind=b"g"), tar_file("x.wav")))
    assert read_all(path) == ({"x.wav": WAV}, [])
    path.write_bytes(zip_of(ZipEntry(b"x.wav"), comment=b"made by us"))
    assert read_all(path) == ({"x.wav": WAV}, [])


# Limits at their boundary -------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [FORMATS["zip deflated"], FORMATS["tar.gz"]])
def test_limits_hold_at_their_boundary(pack: Callable[[Tree], bytes], tmp_path: Path) -> None:
    path, tree = tmp_path / "team", {"a/x.wav": bytes(range(100)), "a/b/y.wav": bytes(range(50))}
    path.write_bytes(pack(tree))
    assert (
        read_all(path, ArchiveLimits(members=2, total_bytes=150, member_bytes=100, depth=3, path_characters=9))[0]
        == tree
    )
    for limits, code in (
        (ArchiveLimits(members=1), "too-many-members"),
        (ArchiveLimits(total_bytes=149), "archive-too-large"),
        (ArchiveLimits(member_bytes=99), "member-too-large"),
        (ArchiveLimits(depth=2), "deep-path"),
        (ArchiveLimits(path_characters=8), "long-name"),
    ):
        assert refusal(pack(tree), path, limits) == code


@pytest.mark.parametrize("form", ["zip deflated", "zip bzip2", "zip lzma", "tar.gz", "tar.bz2", "tar.xz", "tar.zst"])
def test_small_files_may_pack_well_and_large_ones_may_not(form: str, tmp_path: Path) -> None:
    path, tree = tmp_path / "team", {"silence.wav": bytes(3 * 2**20)}
    path.write_bytes(FORMATS[form](tree))
    assert read_all(path)[0] == tree
    assert refusal(path.read_bytes(), path, ArchiveLimits(ratio_floor_bytes=2**20)) == "compression-bomb"


def test_bomb_among_healthy_files_is_refused_by_its_own_ratio(tmp_path: Path) -> None:
    noise = b"".join(bytes([value * 7919 % 251]) for value in range(10**6))
    tree = {f"{number}.wav": noise[number:] for number in range(5)} | {"zeros": bytes(3 * 2**20)}
    for pack in (pack_zip(zipfile.ZIP_STORED), FORMATS["tar gnu"]):
        (tmp_path / "team").write_bytes(pack(tree))
        assert read_all(tmp_path / "team", ArchiveLimits(ratio_floor_bytes=2**20))[0] == tree
    assert (
        refusal(FORMATS["zip deflated"](tree), tmp_path / "team", ArchiveLimits(ratio_floor_bytes=2**20))
        == "compression-bomb"
    )


# Not readable, and damaged ------------------------------------------------------------------------


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.zip"):
        with pytest.raises(ProblemFound) as caught:
            read_all(path)
        assert caught.value.problem.code == "not-readable"


@pytest.mark.parametrize("form", FORMATS)
def test_archive_cut_anywhere_is_refused_as_cut(form: str, tmp_path: Path) -> None:
    whole = FORMATS[form]({"a.wav": WAV, "b.wav": bytes(range(256)) * 9})
    needed = len(whole.rstrip(b"\0")) if form.startswith("tar ") else len(whole) - 1
    for length in range(600, needed, max(1, needed // 20)):
        assert refusal(whole[:length], tmp_path / "team") == "truncated-archive"


@pytest.mark.parametrize("form", FORMATS)
@given(
    faults=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=6),
    cut=st.floats(0, 1),
)
def test_damage_raises_nothing_but_refusals(
    form: str, faults: list[tuple[float, int]], cut: float, tmp_path: Path
) -> None:
    data = bytearray(FORMATS[form](SAMPLE))
    for place, value in faults:
        data[int(place * len(data))] ^= value
    path = tmp_path / "team"
    path.write_bytes(data if cut > 0.5 else data[: int(2 * cut * len(data))])
    sentence = ""
    try:
        read_all(path, ArchiveLimits(total_bytes=2**24, member_bytes=2**23))
    except ProblemFound as refused:
        sentence = refused.problem.sentence()
    assert not sentence or ": expected " in sentence
    assert not sentence or sentence.isprintable()


@given(
    start=st.sampled_from(
        [b"", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"]
    ),
    rest=st.binary(max_size=2000),
)
def test_any_bytes_are_refused(start: bytes, rest: bytes, tmp_path: Path) -> None:
    assert refusal(start + rest, tmp_path / "team")
