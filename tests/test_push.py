"""`bothends push`: the card, and one commit to a small hub on this machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import constants

from bothends.cli import run
from bothends.model.config import preset
from bothends.model.directory import CARD, CONFIG, FILES, Description, write_description
from bothends.publishing.card import make_card, read_card
from bothends.storage.digests import DIGESTS
from command_line import error_line
from hub_server import TOKEN, Hub, running_hub
from tiny_model import tiny_model

NAME = "org/tiny"
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with running_hub() as running:
        monkeypatch.setattr(constants, "ENDPOINT", running.endpoint)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield running


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model(), tmp_path / "model"))


def push(model: Path, *options: str) -> int:
    return run(["push", str(model), NAME, "--license", "cc-by-4.0", *options])


def evaluation(model: Path, **changes: Any) -> str:
    system = {
        "name": str(model),
        "origin": f"{model}: 2x1, native, beam 4, length penalty 0.6",
        "figures": {"bleu": {"score": 46.24, "interval": {"low": 44.4, "high": 47.9}}},
    }
    content = {"reference": "data/test.de", "signatures": {"bleu": SIGNATURE}, "systems": [system]}
    path = model.parent / "evaluation.json"
    path.write_text(json.dumps({**content, **changes}))
    return str(path)


def test_a_model_and_its_card_in_one_commit(
    hub: Hub, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (model / "optimiser.pt").write_bytes(b"a pickle")
    assert push(model, "--metrics", evaluation(model)) == 0
    repository = hub.repositories[NAME]
    assert repository.messages == ["initial commit", "Upload model"]
    assert not repository.private
    commit = repository.branches["main"]
    assert f"hf:{NAME}@{commit}: " in capsys.readouterr().err
    sent = repository.commits[commit]
    wanted = {name for name in (*FILES, DIGESTS) if (model / name).is_file()}
    assert set(sent) == {*wanted, CARD, ".gitattributes"}
    for name in wanted:
        assert sent[name] == (model / name).read_bytes()
    front = yaml.safe_load(sent[CARD].decode().split("---\n")[1])
    assert front["license"] == "cc-by-4.0"
    assert front["library_name"] == "bothends"
    assert front["pipeline_tag"] == "translation"
    assert {"bothends", "order-2x1"} <= set(front["tags"])
    (result,) = front["model-index"][0]["results"]
    assert result["dataset"] == {"type": "test.de", "name": "test.de"}
    assert result["metrics"] == [
        {
            "type": "bleu",
            "name": "bleu",
            "value": 46.24,
            "args": {"signature": SIGNATURE, "settings": "2x1, native, beam 4, length penalty 0.6"},
        }
    ]
    text = sent[CARD].decode()
    assert f"bothends translate --model hf:{NAME}" in text
    assert f"- bleu: `{SIGNATURE}`" in text
    assert "| bleu | 46.2 (44.4 to 47.9) |" in text
    # `huggingface_hub` reads the same out of it.
    from huggingface_hub import ModelCard

    data = ModelCard(text).data
    assert data.eval_results is not None
    assert data.eval_results[0].metric_args["signature"] == SIGNATURE


def test_another_model_leaves_nothing_of_the_one_before(hub: Hub, model: Path) -> None:
    """Nor does it touch what is no part of a model."""
    there = {"vocabulary.json": b"{}", "samples.txt": b"kept", CONFIG: b"{}"}
    hub.repository(NAME, there)
    assert push(model) == 0
    sent = hub.repositories[NAME].commits[hub.repositories[NAME].branches["main"]]
    assert "vocabulary.json" not in sent
    assert sent["samples.txt"] == b"kept"


def test_a_branch_and_a_private_repository(hub: Hub, model: Path) -> None:
    assert push(model, "--revision", "v2", "--private", "--message", "Second") == 0
    repository = hub.repositories[NAME]
    assert repository.private
    assert set(repository.commits[repository.branches["main"]]) == {".gitattributes"}
    assert CONFIG in repository.commits[repository.branches["v2"]]
    assert repository.messages[-1] == "Second"
    assert push(model, "--revision", "v2") == 0  # the branch is there now


def test_a_dry_run_sends_nothing(hub: Hub, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert push(model, "--dry-run") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("---\nlicense: cc-by-4.0\nlibrary_name: bothends\n")
    assert "nothing sent" in captured.err
    assert hub.requests == []
    assert not (model / CARD).exists()


def test_what_the_user_wrote_stays(hub: Hub, model: Path) -> None:
    text = "# Mine\n\nA text with --- in it.\n\n---\n\nEnd.\n"
    front = "---\nlicense: mit\ntags: [news]\nlanguage: [en, pt]\n---\n"
    (model / CARD).write_text(front + text)
    assert run(["push", str(model), NAME]) == 0  # the licence is known
    sent = hub.repositories[NAME].commits[hub.repositories[NAME].branches["main"]][CARD].decode()
    assert sent.endswith(f"---\n\n{text}")
    found = yaml.safe_load(sent.split("---\n")[1])
    assert found["license"] == "mit"
    assert found["language"] == ["en", "pt"]
    assert found["tags"] == ["news", "bothends", "order-2x1"]
    assert (model / CARD).read_text() == front + text


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("en", "de", ["en", "de"]),
        ("eng_Latn", "deu_Latn", ["eng", "deu"]),
        ("en_XX", "en_XX", ["en"]),
        ("no", None, ["no"]),
        (None, None, None),
    ],
)
def test_languages_as_the_hub_spells_them(
    source: str | None, target: str | None, expected: list[str] | None, tmp_path: Path
) -> None:
    provenance = {"converted_from": {"repository": f"hf:org/opus@{'a' * 40}"}}
    description = Description(
        model=preset("tiny"), source_language=source, target_language=target, provenance=provenance
    )
    card = make_card(tmp_path, description, NAME, "mit")
    read = yaml.safe_load(str(card).split("---\n")[1])
    assert read.get("language") == expected
    assert read["base_model"] == "org/opus"


def test_cards_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_description(tmp_path, Description(model=preset("tiny")))
    for content, complaint in (
        (b"---\na: [\n---\n", "its front matter is not YAML"),
        (b"---\n- a\n---\n", "its front matter should be keys and values"),
        (b"---\ntags: x\n---\n", "tags in its front matter should be a list"),
        (b"\xff\xfe", "cannot be read as text"),
    ):
        (tmp_path / CARD).write_bytes(content)
        arguments = ["push", str(tmp_path), NAME, "--license", "mit", "--dry-run"]
        status, line = error_line(arguments, capsys)
        assert (status, complaint in line) == (1, True), line
    (tmp_path / CARD).write_text("---\nno end of it\n")
    card = read_card(tmp_path / CARD)
    assert card is not None
    assert card.front == {}


def lose_the_key(hub: Hub, model: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.delenv("HF_TOKEN")
    return []


def damage(hub: Hub, model: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    (model / "decoder.onnx").write_bytes(b"x")
    return []


def other_scores(hub: Hub, model: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    system = {"name": "another", "origin": "another", "figures": {}}
    return ["--metrics", evaluation(model, systems=[system])]


def no_scores(hub: Hub, model: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    (model.parent / "evaluation.json").write_text("[]")
    return ["--metrics", str(model.parent / "evaluation.json")]


def race(hub: Hub, model: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody else pushes after we have looked."""
    import huggingface_hub

    real = huggingface_hub.HfApi.create_commit

    def late(self: Any, *arguments: Any, **options: Any) -> Any:
        hub.repositories[NAME].commit({"x": b"y"})
        return real(self, *arguments, **options)

    monkeypatch.setattr(huggingface_hub.HfApi, "create_commit", late)
    return []


def offline(hub: Hub, model: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return []


@pytest.mark.parametrize(
    ("arrange", "complaint"),
    [
        (lose_the_key, "the Hub answered 401"),
        (damage, "decoder.onnx: 1 bytes, but"),
        (other_scores, "evaluation.json: evaluates another, and not"),
        (no_scores, "not the JSON of bothends evaluate"),
        (race, "the Hub answered 412"),
        (offline, "HF_HUB_OFFLINE forbids asking the Hub"),
    ],
)
def test_what_can_go_wrong_is_one_line(
    arrange: Any,
    complaint: str,
    hub: Hub,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = arrange(hub, model, monkeypatch)
    arguments = ["push", str(model), NAME, "--license", "mit", *options]
    _, line = error_line(arguments, capsys)
    assert complaint in line
    commits = [each for found in hub.repositories.values() for each in found.commits.values()]
    assert not any(CONFIG in files for files in commits)


def test_a_licence_and_a_name_are_needed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, line = error_line(["push", str(model), NAME], capsys)
    assert (status, "no licence; give --license ID" in line) == (2, True)
    status, line = error_line(["push", str(model), "tiny", "--license", "mit"], capsys)
    assert (status, line) == (2, "tiny: expected a repository, org/name")
