"""Inputs and outputs in stores of objects: the same bytes as on a disk, whole or not at all.

fsspec's memory and local file systems stand for stores without uploads that can be given up; moto's
server is a real S3 server on this machine.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bothends.distillation.bulk import BulkTranslation, translate_in_bulk
from bothends.distillation.distill import Distillation, distill
from bothends.distillation.shard_run import Share
from bothends.errors import BothendsError, UsageError
from bothends.jobs import locks
from bothends.jobs.locks import lock_directory
from bothends.jobs.pool import InThisProcess, ProcessPool
from bothends.storage.places import (
    Output,
    Place,
    Remote,
    names_in,
    open_reading,
    parse_place,
    relative_name,
    remove_tree,
    several_outputs,
    size_of,
    write_whole,
)
from crashing_teacher import CrashingTeacher

FIRST = [f"a {number}" for number in range(11)]
SECOND = [*(f"b {number}" for number in range(9)), "", "  ", "ü"]


@pytest.fixture(autouse=True)
def same_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothends.distillation.corpus_directory.source_commit", lambda: "abc")


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Remote]:
    """An empty place of each of fsspec's own file systems."""
    pytest.importorskip("fsspec")
    url = f"memory://{tmp_path.name}" if request.param == "memory" else f"local://{tmp_path}/store"
    place = parse_place(url)
    assert isinstance(place, Remote)
    yield place
    remove_tree(place)


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def fill(place: Place) -> tuple[Place, Place]:
    """Two inputs, of which one is compressed."""
    if isinstance(place, Path):
        place.mkdir(parents=True)
    write_whole(place / "first", text(FIRST))
    write_whole(place / "second.gz", gzip.compress(text(SECOND)))
    return place / "first", place / "second.gz"


def job_in(place: Place) -> BulkTranslation:
    pool = InThisProcess()
    return BulkTranslation(CrashingTeacher(), fill(place / "in"), place / "out", pool, None, 4)


def content(directory: Place) -> dict[str, bytes]:
    """What is in a directory, without the paths of its inputs."""
    found = {name: (directory / name).read_bytes() for name in names_in(directory)}
    manifest = json.loads(found["manifest.json"])
    del manifest["provenance"]["sources"]
    return {**found, "manifest.json": json.dumps(manifest).encode()}


@pytest.fixture
def expected(tmp_path: Path) -> dict[str, bytes]:
    options = job_in(tmp_path / "here")
    assert translate_in_bulk(options) is not None
    return content(options.output)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("text.en", Path("text.en")),
        ("s3://bucket/a/b.gz", Remote("s3://bucket/a/b.gz")),
        ("S3://bucket/dir/", Remote("s3://bucket/dir")),
        ("hdfs://name:8020/x", Remote("hdfs://name:8020/x")),
        ("file:///data/x", Path("/data/x")),
        ("C:/x", Path("C:/x")),
    ],
)
def test_a_url_is_no_path(given: str, expected: Place) -> None:
    assert parse_place(given) == expected


@pytest.mark.parametrize("wrong", ["s3://", "gs:///", "file://data/x"])
def test_half_a_url_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"expected \w+://"):
        parse_place(wrong)


def test_the_parts_of_a_url() -> None:
    place = Remote("s3://bucket/jobs/news.de.job")
    assert (place.name, place.suffix) == ("news.de.job", ".job")
    assert place.parent == Remote("s3://bucket/jobs")
    assert place / "../news.de" == Remote("s3://bucket/jobs/news.de")
    assert relative_name(Remote("s3://bucket/jobs/news.de"), place) == "../news.de"


def test_without_fsspec_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(BothendsError, match=r"s3://b/x: needs fsspec: pip install 'bothends"):
        Remote("s3://b/x").exists()


def test_a_store_without_its_package_says_which() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(BothendsError, match="no-such-store://x/y: cannot be reached"):
        Remote("no-such-store://x/y").exists()


def test_files_come_and_go(store: Remote) -> None:
    file = store / "a" / "b"
    assert not file.exists()
    assert names_in(store) == []
    assert size_of(file) is None
    for content in (b"one\ntwo\n", b"three"):  # a second one replaces the first
        write_whole(file, content)
        assert file.read_bytes() == content
        assert size_of(file) == len(content)
    with open_reading(file) as reader:
        assert list(reader) == [b"three"]
    assert names_in(store / "a") == ["b"]
    assert (file.is_file(), file.is_dir(), (store / "a").is_dir()) == (True, False, True)
    file.unlink()
    file.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        file.unlink()


def test_an_output_is_seen_when_it_is_committed(store: Remote) -> None:
    with several_outputs() as outputs:
        outputs.append(Output(store / "x"))
        outputs[0].write(b"he")
        outputs[0].write(b"llo")
        record = outputs[0].close()
        assert not (store / "x").exists()
    assert (store / "x").read_bytes() == b"hello"
    assert record.bytes == 5
    with pytest.raises(ZeroDivisionError), several_outputs() as outputs:  # noqa: PT012
        outputs.append(Output(store / "y"))
        outputs[0].write(b"half")
        raise ZeroDivisionError
    assert names_in(store) == ["x"]


def test_a_job_in_a_store_writes_what_a_disk_gets(
    store: Remote, expected: dict[str, bytes]
) -> None:
    options = job_in(store)
    manifest = translate_in_bulk(options)
    assert content(options.output) == expected
    assert translate_in_bulk(options) == manifest  # and finds it complete
    single = replace(options, inputs=options.inputs[:1], output=store / "single")
    assert translate_in_bulk(single) is not None
    assert (store / "single").read_bytes() == expected["first"]
    assert translate_in_bulk(single) is not None
    with pytest.raises(BothendsError, match="another job"):
        translate_in_bulk(replace(single, shard_lines=5))


class Killed(BaseException):
    """Ends a run at once: nothing in the code handles it."""


@pytest.mark.parametrize("point", range(1, 16))
def test_stopped_at_any_write_a_job_goes_on(
    store: Remote, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, point: int
) -> None:
    options, calls = job_in(store), 0
    monkeypatch.setattr(locks, "EXPIRED", -1.0)  # whoever is gone is gone at once
    with monkeypatch.context() as patch:
        for kind, name in ((Remote, "write_bytes"), (Output, "commit"), (Output, "close")):
            original: Any = getattr(kind, name)

            def guarded(*arguments: Any, original: Any = original) -> Any:
                nonlocal calls
                calls += 1
                if calls == point:
                    raise Killed
                return original(*arguments)

            patch.setattr(kind, name, guarded)
        try:
            translate_in_bulk(options)
        except Killed:
            assert not (options.output / "manifest.json").exists()
        else:
            assert calls < point, "all points are tried"
    assert translate_in_bulk(options) is not None
    assert content(options.output) == expected


def test_machines_share_a_job_in_a_store(store: Remote, expected: dict[str, bytes]) -> None:
    options = job_in(store)
    for part in (1, 2):
        assert translate_in_bulk(replace(options, share=Share(part, 2))) is None
    assert translate_in_bulk(options) is not None
    assert content(options.output) == expected


def test_shards_of_another_job_are_refused_at_once(store: Remote) -> None:
    options = job_in(store)
    translate_in_bulk(replace(options, share=Share(1, 2)))
    with pytest.raises(BothendsError, match=r"shards of another job .shard_lines 4, not 5"):
        translate_in_bulk(replace(options, shard_lines=5))


def test_a_second_driver_is_refused_until_the_first_is_gone(
    store: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "RENEWED", 0.05)
    with lock_directory(store, "taken"):
        for shared in (False, True):
            with (
                pytest.raises(BothendsError, match=r"taken \(process \d+ on .*try again in \d+ s"),
                lock_directory(store, "taken", shared=shared),
            ):
                pass
        time.sleep(0.2)
        holder = store / ".locks" / names_in(store / ".locks")[0]
        renewed = json.loads(holder.read_bytes())["renewed"]
        assert time.time() - renewed < 0.2, "a living holder renews its lock"
    with lock_directory(store, "taken"):  # the first has left
        assert len(names_in(store / ".locks")) == 1
    # One that was killed leaves its lock, which ends some time after its last sign of life.
    dead = {"host": "h", "process": 1, "shared": False, "renewed": time.time() - 61}
    write_whole(store / ".locks" / "0.json", json.dumps(dead).encode())
    with lock_directory(store, "taken"):
        assert "0.json" not in names_in(store / ".locks")


def test_several_hold_a_lock_that_they_share(store: Remote) -> None:
    with lock_directory(store, "taken", shared=True), lock_directory(store, "taken", shared=True):
        assert len(names_in(store / ".locks")) == 2
    assert names_in(store / ".locks") == []


def test_memory_is_not_shared_with_workers() -> None:
    pytest.importorskip("fsspec")
    options = replace(job_in(Remote("memory://not-shared")), pool=ProcessPool(1))
    with pytest.raises(UsageError, match="other processes do not see it"):
        translate_in_bulk(options)


def test_a_missing_input_is_one_line(store: Remote) -> None:
    options = replace(job_in(store), inputs=(store / "nothing",))
    with pytest.raises(BothendsError, match="nothing: no such file"):
        translate_in_bulk(options)


def test_distill_reads_and_writes_a_store(store: Remote, tmp_path: Path) -> None:
    here, there = (
        Distillation(
            CrashingTeacher(),
            fill(place / "in"),
            place / "corpus",
            shard_lines=4,
            pool=InThisProcess(),
        )
        for place in (tmp_path / "disk", store)
    )
    manifests = [distill(here), distill(there)]
    assert manifests[0] is not None
    assert manifests[1] is not None
    assert manifests[0].files == manifests[1].files
    assert manifests[0].shards == manifests[1].shards
    assert distill(there) == manifests[1]  # complete
    for name in ("train.source", "train.target"):
        assert (there.output / name).read_bytes() == (here.output / name).read_bytes()


@pytest.fixture(scope="module")
def s3() -> Iterator[Remote]:
    """A bucket on an S3 server of this machine."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name, value in (
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("PYTHONPATH", f"{Path(__file__).parent}:{':'.join(filter(None, sys.path))}"),
        ):
            patch.setenv(name, value)
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("bucket")
        yield Remote("s3://bucket")
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.mark.slow
def test_a_job_in_s3_writes_what_a_disk_gets(s3: Remote, expected: dict[str, bytes]) -> None:
    options = job_in(s3 / "job")
    for part in (1, 2):  # other processes write to it, too
        half = replace(options, share=Share(part, 2), pool=ProcessPool(1))
        assert translate_in_bulk(half) is None
    assert translate_in_bulk(options) is not None
    assert content(options.output) == expected
    assert translate_in_bulk(options) is not None
    assert names_in(options.output) == ["first", "manifest.json", "second"]


@pytest.mark.slow
def test_an_upload_to_s3_is_whole_or_nothing(s3: Remote) -> None:
    large = b"line\n" * (3 << 20)  # several parts
    with pytest.raises(ZeroDivisionError), several_outputs() as outputs:  # noqa: PT012
        outputs.append(Output(s3 / "large"))
        outputs[0].write(large)
        raise ZeroDivisionError
    assert not (s3 / "large").exists()
    with several_outputs() as outputs:
        outputs.append(Output(s3 / "large"))
        for start in range(0, len(large), 1 << 20):
            outputs[0].write(large[start : start + (1 << 20)])
        record = outputs[0].close()
        assert not (s3 / "large").exists()
    assert size_of(s3 / "large") == record.bytes == len(large)
    with open_reading(s3 / "large") as file:
        assert sum(1 for _ in file) == 3 << 20
    with several_outputs() as outputs:  # and nothing at all is a file, too
        outputs.append(Output(s3 / "empty"))
        outputs[0].close()
    assert (s3 / "empty").read_bytes() == b""


@pytest.mark.slow
def test_a_second_driver_on_s3_is_refused(s3: Remote) -> None:
    with (
        lock_directory(s3 / "x", "taken"),
        pytest.raises(BothendsError, match="taken"),
        lock_directory(s3 / "x", "taken"),
    ):
        pass


@pytest.mark.slow
def test_a_bucket_that_is_not_there_is_one_line(s3: Remote) -> None:
    with pytest.raises(BothendsError, match=r"s3://other/x: cannot be written"):
        write_whole(Remote("s3://other/x"), b"")
