"""Models of the Hub by name, against a small hub on this machine and against its cache alone."""

from __future__ import annotations

import json
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

import foreign_models
from bothends import Translator
from bothends.cli import run
from bothends.errors import BothendsError, UsageError
from bothends.model import hub as hub_module
from bothends.model.bundled import find_model, find_trainable
from bothends.model.directory import CONFIG, FILES, WEIGHTS, read_description
from bothends.model.hub import HubName, origin, short_name
from bothends.serve.models import Models
from bothends.storage.digests import DIGESTS
from command_line import error_line, python
from hub_server import Hub, running_hub
from tiny_model import sentences, tiny_model

NAME = "org/tiny-2x1"


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that `huggingface_hub` asks in place of the real one, with a cache of its own."""
    with running_hub() as running:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(
            constants.ENDPOINT, running.endpoint
        )
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", running.endpoint)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr(hub_module, "_said", set())
        yield running


@pytest.fixture
def tiny(hub: Hub) -> Hub:
    """A hub with one model, and beside it what never must be downloaded."""
    other = {"pytorch_model.bin": b"a pickle", "old/config.json": b"{}", "notes.txt": b"x"}
    hub.repository(NAME, {**files_of(tiny_model()), **other})
    return hub


def go_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def translate(*options: str) -> str:
    source, output = Path("source.txt"), Path("output.txt")
    source.write_text("\n".join(sentences(5)) + "\n")
    assert run(["translate", str(source), "--output", str(output), "--threads", "1", *options]) == 0
    return output.read_text()


def test_a_model_by_its_name(
    tiny: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = translate("--model", str(tiny_model()))
    capsys.readouterr()
    assert translate("--model", f"hf:{NAME}") == expected
    commit = tiny.repositories[NAME].branches["main"]
    assert f"hf:{NAME}: the main branch is now hf:{NAME}@{commit}" in capsys.readouterr().err
    # Only what a model is made of, without the weights, which translating does not need.
    wanted = {name for name in (*FILES, DIGESTS) if (tiny_model() / name).is_file()}
    assert sorted(tiny.downloaded) == sorted(wanted - {WEIGHTS})
    # Everything is in the cache now.
    go_offline(monkeypatch)
    tiny.requests.clear()
    assert translate("--model", f"hf:{NAME}") == expected
    assert tiny.requests == []


def test_in_a_process_of_its_own(tiny: Hub, tmp_path: Path) -> None:
    """The same with nothing but the variables that `huggingface_hub` documents."""
    program = f"""
from bothends import Translator
with Translator.load("hf:{NAME}", threads=1) as translator:
    print(translator.translate({sentences(1)[0]!r}).text)
    print(translator.description.provenance["downloaded_from"])
"""
    environment = {"HF_ENDPOINT": tiny.endpoint, "HF_HOME": str(tmp_path / "home")}
    environment |= {"HF_HUB_OFFLINE": "0", "NO_PROXY": "*"}
    result = python("-c", program, **environment)
    with Translator.load(tiny_model(), threads=1) as translator:
        expected = translator.translate(sentences(1)[0]).text
    commit = tiny.repositories[NAME].branches["main"]
    assert result.stdout.splitlines() == [expected, f"hf:{NAME}@{commit}"], result.stderr
    assert result.stderr.splitlines() == [
        f"bothends: hf:{NAME}: the main branch is now hf:{NAME}@{commit}"
    ]
    tiny.requests.clear()
    result = python("-c", program, **{**environment, "HF_HUB_OFFLINE": "1"})
    assert result.stdout.splitlines() == [expected, f"hf:{NAME}@{commit}"], result.stderr
    assert tiny.requests == []


def test_a_commit_stays_where_it_is_and_a_branch_moves(tiny: Hub) -> None:
    repository = tiny.repositories[NAME]
    first = repository.branches["main"]
    files = files_of(tiny_model("1x1"))
    second = repository.commit(files, branch="next/one")
    assert find_model(f"hf:{NAME}").name == first
    assert read_description(find_model(f"hf:{NAME}@next/one")).order.directions == 1
    repository.branches["main"] = second
    assert find_model(f"hf:{NAME}").name == second
    tiny.requests.clear()
    found = find_model(f"hf:{NAME}@{first}")
    assert read_description(found).order.directions == 2
    assert origin(found) == HubName(NAME, first)
    assert tiny.requests == []  # a commit that is in the cache is not asked about


def test_a_branch_that_moves_between_two_downloads(
    tiny: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are of one commit: that of the first."""
    repository = tiny.repositories[NAME]
    first = repository.branches["main"]
    real = hub_module.download

    def download(name: HubName, patterns: Any) -> Path:
        found = real(name, patterns)
        repository.commit(files_of(tiny_model("1x1")))
        return found

    monkeypatch.setattr("bothends.model.bundled.download", download)
    assert find_model(f"hf:{NAME}").name == first


def test_a_directory_that_is_laid_out_as_the_cache(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As other tools write it, and without a hub."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    root = tmp_path / "cache" / "models--someone--copy"
    shutil.copytree(tiny_model(), root / "blobs")
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(commit)
    snapshot = root / "snapshots" / commit
    snapshot.mkdir(parents=True)
    for file in (root / "blobs").iterdir():
        (snapshot / file.name).symlink_to(Path("../../blobs") / file.name)
    go_offline(monkeypatch)
    with Translator.load("hf:someone/copy", threads=1) as translator:
        assert translator.description.provenance["downloaded_from"] == f"hf:someone/copy@{commit}"
        assert translator.translate("ba").text
    assert hub.requests == []


def foreign(directory: Path) -> dict[str, bytes]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        foreign_models.marian(directory)
    return files_of(directory)


def test_a_model_of_another_library_is_to_be_converted(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = foreign(tmp_path / "original")
    unwanted = ("tf_model.h5", "rust_model.ot", "pytorch_model.bin", "onnx/a.json")
    hub.repository("org/marian", {**files, **dict.fromkeys(unwanted, b"")})
    commit = hub.repositories["org/marian"].branches["main"]
    capsys.readouterr()
    status, line = error_line(["translate", "--model", f"hf:org/marian@{commit}"], capsys)
    assert status == 1
    assert f"bothends convert hf:org/marian@{commit} --output DIR" in line
    assert hub.downloaded == [CONFIG]
    output = tmp_path / "converted"
    assert run(["convert", "hf:org/marian", "--output", str(output)]) == 0
    assert not set(hub.downloaded) & {Path(name).name for name in unwanted}
    converted = read_description(output).provenance["converted_from"]
    assert converted["repository"] == f"hf:org/marian@{commit}"
    local = tmp_path / "local"
    assert run(["convert", str(tmp_path / "original"), "--output", str(local)]) == 0
    assert (output / WEIGHTS).read_bytes() == (local / WEIGHTS).read_bytes()


def test_old_weights_where_there_are_no_others(hub: Hub, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    files = foreign(tmp_path / "original")
    torch.save(load_file(tmp_path / "original" / WEIGHTS), tmp_path / "weights.bin")
    del files[WEIGHTS]
    hub.repository(
        "org/old", {**files, "pytorch_model.bin": (tmp_path / "weights.bin").read_bytes()}
    )
    assert run(["convert", "hf:org/old", "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / WEIGHTS).is_file()


def test_what_cannot_be_converted_is_not_downloaded(
    tiny: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {CONFIG: b'{"model_type": "t5"}', WEIGHTS: b"gigabytes"}
    commit = next(iter(tiny.repository("org/t5", files).commits))
    capsys.readouterr()
    output = str(tmp_path / "out")
    status, line = error_line(["convert", f"hf:org/t5@{commit}", "--output", output], capsys)
    assert status == 1
    assert "model type 't5' cannot be converted" in line
    assert tiny.downloaded == [CONFIG]
    ours = tiny.repositories[NAME].branches["main"]
    status, line = error_line(["convert", f"hf:{NAME}@{ours}", "--output", output], capsys)
    assert status == 1
    assert "a model of bothends already" in line


def closed_port(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")


def gate(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repositories[NAME].gated = True


def hide(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repositories[NAME].private = True


def break_down(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.failure = 500


def set_offline(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    go_offline(monkeypatch)


def empty(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repository(NAME, {".gitattributes": b""})


@pytest.mark.parametrize(
    ("name", "arrange", "complaint"),
    [
        ("hf:org/nothing", None, "hf:org/nothing: no such repository, or a private one"),
        (f"hf:{NAME}", hide, f"hf:{NAME}: no such repository, or a private one"),
        (f"hf:{NAME}", gate, f"hf:{NAME}: gated; ask for access"),
        (f"hf:{NAME}@v9", None, f"hf:{NAME}@v9: no such branch, tag or commit"),
        (f"hf:{NAME}", closed_port, f"hf:{NAME}: the Hub cannot be reached, and the cache does"),
        (f"hf:{NAME}", break_down, f"hf:{NAME}: the Hub cannot be reached, and the cache does"),
        (f"hf:{NAME}", set_offline, "HF_HUB_OFFLINE forbids a download"),
        (f"hf:{NAME}", empty, f"hf:{NAME}: not a model of bothends"),
        ("hf:", None, "hf:: expected hf:org/name or hf:org/name@revision"),
        ("hf:a/b/c", None, "expected hf:org/name"),
        ("hf:../up", None, "expected hf:org/name"),
        (f"hf:{NAME}@", None, "expected hf:org/name"),
    ],
)
def test_what_can_go_wrong_is_one_line(
    name: str,
    arrange: Any,
    complaint: str,
    tiny: Hub,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if arrange is not None:
        arrange(tiny, monkeypatch)
    with pytest.raises(BothendsError, match=re.escape(complaint)) as caught:
        find_model(name)
    assert "\n" not in str(caught.value)


def test_a_download_that_breaks_off(
    tiny: Hub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find_model(f"hf:{NAME}")
    commit = tiny.repositories[NAME].branches["main"]
    go_offline(monkeypatch)
    capsys.readouterr()
    status, line = error_line(
        ["export", f"hf:{NAME}@{commit}", "--output", "nowhere"], capsys
    )  # the weights are missing in the cache
    assert status == 1
    assert line.endswith("not all of it, and HF_HUB_OFFLINE forbids a download")


def test_without_the_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    status, line = error_line(["translate", "--model", f"hf:{NAME}"], capsys)
    assert status == 1
    assert line.endswith("huggingface_hub, which is not installed: pip install 'bothends[hub]'")


def test_nothing_is_written_to_the_cache(
    tiny: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, line = error_line(["export", f"hf:{NAME}"], capsys)
    assert (status, "name a directory with --output DIR" in line) == (2, True)
    status, line = error_line(["verify", "--record", f"hf:{NAME}"], capsys)
    assert (status, "nothing is written to the Hub's cache" in line) == (2, True)
    output = tmp_path / "exported"
    for _ in range(2):  # the second time over the first
        command = ["export", f"hf:{NAME}", "--precision", "float32", "--output", str(output)]
        assert run(command) == 0
    assert read_description(output).provenance["downloaded_from"].startswith(f"hf:{NAME}@")
    assert run(["verify", str(output), f"hf:{NAME}"]) == 0
    assert "NOT as" not in capsys.readouterr().out


def test_a_model_that_was_not_exported(tiny: Hub) -> None:
    tiny.repository("org/weights", files_of(tiny_model(precision=None)))
    commit = tiny.repositories["org/weights"].branches["main"]
    with pytest.raises(BothendsError) as caught:
        Translator.load("hf:org/weights")
    assert str(caught.value) == (
        f"hf:org/weights@{commit}: no encoder.onnx and no decoder.onnx; it was not exported; "
        f"`bothends export hf:org/weights@{commit} --output DIR`, then use DIR"
    )
    assert WEIGHTS not in tiny.downloaded
    with Translator.load("hf:org/weights", engine="torch") as translator:
        assert translator.translate("ba").text
    assert (find_trainable("hf:org/weights") / WEIGHTS).is_file()


def test_commands_record_the_commit(
    tiny: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("\n".join(sentences(4)) + "\n")
    commit = tiny.repositories[NAME].branches["main"]
    model = ["--model", f"hf:{NAME}"]
    evaluate = ["evaluate", *model, "--source", "text", "--reference", "text", "--threads", "1"]
    assert run([*evaluate, "--metrics", "exact", "--json", "evaluation.json"]) == 0
    (system,) = json.loads(Path("evaluation.json").read_text())["systems"]
    assert system["name"] == f"hf:{NAME}"
    assert system["origin"].startswith(f"hf:{NAME}@{commit}: 2x1, ")
    distill = ["distill", *model, "--source", "text", "--output", "distilled", "--processes", "1"]
    assert run(distill) == 0
    provenance = json.loads(Path("distilled/manifest.json").read_text())["provenance"]
    assert provenance["teacher"] == f"hf:{NAME}@{commit}"
    text = ["--source", "text", "--target", "text"]
    assert run(["prepare", *text, "--vocabulary", f"hf:{NAME}", "--output", "prepared"]) == 0


def test_training_begins_with_a_model_of_the_hub(
    tiny: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commit is written down, and a run that goes on needs no hub."""
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("\n".join(sentences(40)) + "\n")
    text = [
        "--source",
        "text",
        "--target",
        "text",
        "--valid-source",
        "text",
        "--valid-target",
        "text",
    ]
    assert run(["prepare", *text, "--vocabulary", f"hf:{NAME}", "--output", "prepared"]) == 0
    recipe = f"""
data: {{prepared: prepared}}
init: hf:{NAME}
run: run
order: 2x2
batch: {{tokens: 200}}
training: {{updates: 1}}
checkpoints: {{every: 1}}
"""
    Path("recipe.yaml").write_text(recipe)
    commit = tiny.repositories[NAME].branches["main"]
    assert run(["train", "recipe.yaml"]) == 0
    tiny.repositories[NAME].commit({CONFIG: b"{}"})  # the branch moves
    tiny.requests.clear()
    assert run(["train", "recipe.yaml", "training.updates=2"]) == 0
    assert tiny.requests == []
    for checkpoint in Path("run/checkpoints").iterdir():
        assert read_description(checkpoint).provenance["began_with"] == f"hf:{NAME}@{commit}"


def test_a_server_calls_it_by_its_name(tiny: Hub) -> None:
    models = Models([f"hf:{NAME}"])
    assert [model.name for model in models.all] == ["tiny-2x1"]
    with pytest.raises(UsageError, match="another model is called tiny-2x1"):
        Models([f"hf:{NAME}", f"hf:{NAME}@main"])


def test_names() -> None:
    commit = "a" * 40
    snapshot = Path(f"/x/hub/models--org--name/snapshots/{commit}")
    assert origin(snapshot) == HubName("org/name", commit)
    assert origin(Path("/x/models/name")) is None
    assert origin(Path(f"/x/datasets--org--name/snapshots/{commit}")) is None
    assert short_name("hf:org/name@v1") == short_name(snapshot) == "name"
    assert short_name("some/where") == "where"
    assert HubName.parse("hf:org/name@refs/pr/1") == HubName("org/name", "refs/pr/1")
    assert str(HubName.parse("hf:gpt2")) == "hf:gpt2"
    assert HubName.parse("hf:a/b").moves
    assert not HubName("a/b", commit).moves


def test_a_chain_converts_a_model_of_the_hub(tmp_path: Path) -> None:
    """Another repository is another teacher, so the stage knows it by name."""
    from bothends.chain.recipe import Converting
    from bothends.chain.stages import _convert

    class Chain:
        directory = tmp_path
        convert = Converting(model=Path("hf:org/marian"))
        evaluation: Any = type("Evaluation", (), {"source": "s", "reference": "r"})

    stage = next(iter(_convert(Chain(), Chain.convert)))  # type: ignore[arg-type]
    assert stage.settings["repository"] == "hf:org/marian"
    assert stage.arguments(tmp_path)[:2] == ["convert", "hf:org/marian"]
