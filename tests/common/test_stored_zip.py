"""Archives that are streamed from a list: what other programs read of them, and parts of them."""

import io
import zipfile
import zlib

import pytest

from common import stored_zip as module
from common.stored_zip import ZipMember, count_bytes, stored_zip

FILES = {"a/1.wav": b"one" * 1000, "a/empty.wav": b"", "b/ä ö.wav": bytes(range(256)) * 50}


def lines_of(files):
    members = (ZipMember(path, f"key-{n}", len(data), zlib.crc32(data)) for n, (path, data) in enumerate(files.items()))
    return [member.line() for member in members]


def opened(files):
    by_key = {f"key-{n}": data for n, data in enumerate(files.values())}
    return lambda key: io.BytesIO(by_key[key])


def whole(files, **given):
    return b"".join(stored_zip(lambda: lines_of(files), opened(files), **given))


def test_archive_is_read_by_others_and_as_long_as_told():
    data = whole(FILES)
    assert len(data) == count_bytes(lambda: lines_of(FILES))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == FILES
        assert {one.compress_type for one in archive.infolist()} == {zipfile.ZIP_STORED}


def test_any_range_is_the_same_bytes_and_opens_only_what_it_needs():
    data = whole(FILES)
    for start in range(0, len(data), 997):
        for stop in (start + 1, start + 4000, len(data)):
            assert whole(FILES, start=start, stop=stop) == data[start:stop]
    opened_keys = []

    def open_key(key):
        opened_keys.append(key)
        return opened(FILES)(key)

    assert b"".join(stored_zip(lambda: lines_of(FILES), open_key, 3100, 3200)) == data[3100:3200]
    assert "key-0" not in opened_keys


def test_beyond_the_limits_of_plain_zip_it_is_zip64(monkeypatch):
    many = {f"{number}.wav": b"" for number in range(66_000)}
    with zipfile.ZipFile(io.BytesIO(whole(many))) as archive:
        assert len(archive.namelist()) == 66_000
    monkeypatch.setattr(module, "MOST", 13_000)  # as if 4 GiB were so small
    with zipfile.ZipFile(io.BytesIO(whole(FILES))) as archive:
        assert archive.getinfo("b/ä ö.wav").header_offset < 13_000
        assert archive.read("b/ä ö.wav") == FILES["b/ä ö.wav"]
    far = {f"{number}.wav": b"x" * 9000 for number in range(3)}
    with zipfile.ZipFile(io.BytesIO(whole(far))) as archive:
        assert archive.getinfo("2.wav").header_offset > 13_000
        assert archive.read("2.wav") == b"x" * 9000


def test_content_that_has_shrunk_is_told():
    with pytest.raises(ValueError, match="key-0: expected 3000 bytes, found 5"):
        b"".join(stored_zip(lambda: lines_of(FILES), lambda _: io.BytesIO(b"short")))
