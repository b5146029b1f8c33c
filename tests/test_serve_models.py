"""Models on demand: loaded once, within a limit, and anew when their directory changes."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from bothends.errors import BothendsError, UsageError
from bothends.model.bundled import find_model
from bothends.model.directory import Description
from bothends.serve import models as module
from bothends.serve.models import LOOK_EVERY, Models, ModelUnavailableError, UnknownModelError
from bothends.translating.load_options import LoadOptions
from bothends.translator import Translator


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Path]:
    """`copy(name)`: a model directory that a test may change."""

    def copy(name: str, order: str = "2x1") -> Path:
        return Path(shutil.copytree(find_model(f"en-pt-{order}"), tmp_path / name))

    return copy


def test_the_models_in_the_box_the_default_first() -> None:
    models = Models()
    assert [model.name for model in models.all] == ["en-pt-1x1", "en-pt-2x1"]
    assert models.find().name == "en-pt-1x1"
    assert models.find("en-pt-2x1").name == "en-pt-2x1"
    assert models.find(None, "auto", "pt").name == "en-pt-1x1"
    assert models.find("en-pt-1x1", "auto", "pt").name == "en-pt-1x1"
    assert models.find(None, "en", "pt").name == "en-pt-1x1"
    assert models.loaded == []
    with pytest.raises(UnknownModelError, match="en to pt"):
        models.find(None, "pt", "en")


def test_languages_of_regions_find_the_nearest_model(copy: Callable[[str], Path]) -> None:
    pairs = {"a": ("en", "pt"), "b": ("en_GB", "pt-BR"), "c": ("fr", "zh")}
    directories = []
    for name, (own_source, own_target) in pairs.items():
        directories.append(copy(name))
        path = directories[-1] / "config.json"
        config = json.loads(path.read_text())
        (directories[-1] / "digests.json").unlink()
        path.write_text(
            json.dumps({**config, "source_language": own_source, "target_language": own_target})
        )
    models = Models(directories)
    for source, target, expected in (
        ("en", "pt", "a"),
        ("en-US", "pt", "a"),
        ("en-US", "pt-PT", "a"),
        ("auto", "pb", "b"),
        (None, "pt_BR", "b"),
        ("en-GB", "pt-BR", "b"),
        ("en", "pt-BR", "a"),
        ("en-GB", "pt", "a"),
        ("FR_ca", "zh-CN", "c"),
    ):
        assert models.find(None, source, target).name == expected, (source, target)
    assert models.find("a", "en-US", "pt-BR").name == "a"
    with pytest.raises(UnknownModelError, match="target language of b is 'pt-BR', not 'pt-PT'"):
        models.find("b", "en", "pt-PT")
    pairs_told = "from 'fr' to 'zh-TW'; there is en to pt, en_GB to pt-BR, fr to zh"
    with pytest.raises(UnknownModelError, match=pairs_told):
        models.find(None, "fr", "zh-TW")


def test_a_model_is_loaded_once_whoever_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads: list[object] = []
    load = LoadOptions.load

    def counted(self: LoadOptions, directory: Path) -> Translator:
        loads.append(directory)
        return load(self, directory)

    monkeypatch.setattr(LoadOptions, "load", counted)
    models = Models()
    found: list[Translator] = []
    threads = [
        threading.Thread(target=lambda: found.append(models.translator(models.find())))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    assert len(set(map(id, found))) == 1


def test_a_changed_directory_is_loaded_anew(copy: Callable[..., Path], clock: Clock) -> None:
    directory = copy("model", "1x1")
    models = Models([directory], clock=clock)
    model = models.find()
    old = models.translator(model)
    shutil.rmtree(directory)
    shutil.copytree(find_model("en-pt-2x1"), directory)
    assert models.translator(model) is old  # not looked at again yet
    clock.now += LOOK_EVERY
    new = models.translator(model)
    assert new is not old
    assert str(model.description.order) == "2x1"
    assert old.translate("I am hungry.").text  # who has the old one keeps it
    clock.now += LOOK_EVERY
    assert models.translator(model) is new


def test_a_damaged_directory_leaves_the_old_model_in_place(
    copy: Callable[..., Path], clock: Clock
) -> None:
    directory = copy("model")
    models = Models([directory], clock=clock)
    model = models.find()
    old = models.translator(model)
    (decoder,) = directory.glob("decoder.onnx*")  # compressed or not
    whole = decoder.read_bytes()
    decoder.write_bytes(whole[: len(whole) // 2])
    clock.now += LOOK_EVERY
    assert models.translator(model) is old
    decoder.write_bytes(whole)
    clock.now += LOOK_EVERY
    new = models.translator(model)
    assert new is not old


def test_a_directory_that_changes_while_it_is_read_is_not_taken(
    copy: Callable[..., Path], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = copy("model")
    models = Models([directory], clock=clock)
    model = models.find()
    old = models.translator(model)
    signs = iter([(("a", 1, 1),), (("a", 1, 2),)])
    monkeypatch.setattr(module, "sign", lambda directory: next(signs))
    clock.now += LOOK_EVERY
    assert models.translator(model) is old


def test_while_one_loads_others_go_on(copy: Callable[..., Path], clock: Clock) -> None:
    models = Models([copy("model")], clock=clock)
    model = models.find()
    old = models.translator(model)
    clock.now += LOOK_EVERY
    assert models.ready(model) is None
    with model.loading:
        assert models.ready(model) is old


def test_models_used_longest_ago_make_room(copy: Callable[..., Path], clock: Clock) -> None:
    directories = [copy("a"), copy("b"), copy("c")]
    size = Models(directories).all[0].bytes
    models = Models(directories, memory_bytes=2 * size + 1000, clock=clock)
    for name in "abac":
        clock.now += 0.1
        models.translator(models.find(name))
    assert [model.name for model in models.loaded] == ["a", "c"]
    models.translator(models.find("b"))
    assert [model.name for model in models.loaded] == ["b", "c"]


@dataclass
class Described:
    """What a loaded model is here: a description, for which threads wait for each other."""

    own: Description
    meeting: threading.Barrier

    @property
    def description(self) -> Description:
        with suppress(threading.BrokenBarrierError):  # nobody else came
            self.meeting.wait(timeout=1)
        return self.own


def test_models_that_are_loaded_at_once_make_room_for_each_other(
    copy: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = threading.Barrier(2)
    load = LoadOptions.load
    monkeypatch.setattr(
        LoadOptions, "load", lambda self, path: Described(load(self, path).description, meeting)
    )
    directories = [copy("a"), copy("b")]
    size = Models(directories).all[0].bytes
    models = Models(directories, memory_bytes=size + 1000)
    threads = [threading.Thread(target=models.translator, args=(each,)) for each in models.all]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(models.loaded) == 1


def test_a_model_larger_than_the_limit_is_refused_at_the_start() -> None:
    with pytest.raises(UsageError, match="raise --memory"):
        Models(memory_bytes=1_000_000)


def test_two_models_of_one_name_are_refused(copy: Callable[..., Path], tmp_path: Path) -> None:
    copy("a")
    shutil.copytree(tmp_path / "a", tmp_path / "b" / "a")
    with pytest.raises(UsageError, match="another model is called a"):
        Models([tmp_path / "a", tmp_path / "b" / "a"])


def test_a_model_that_was_never_loaded_and_is_damaged(copy: Callable[..., Path]) -> None:
    directory = copy("model")
    models = Models([directory])
    (directory / "encoder.onnx").write_bytes(b"")
    with pytest.raises(ModelUnavailableError):
        models.translator(models.find())
    with pytest.raises(BothendsError, match="no such model directory"):
        Models(["nowhere"])
