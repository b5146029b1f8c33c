"""The bundled models: small enough, described, and able to say what a traveller needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bothends import Translator
from bothends.cli import run
from bothends.model.bundled import BUNDLED, DEFAULT_MODEL, bundled_models, find_model
from bothends.model.directory import CARD, CONFIG
from command_line import error_line

MEGABYTE = 1 << 20
ROOT = Path(__file__).parents[1]

#: What a model may write, and words it may choose from.
PORTUGUESE = {
    "Where is the nearest station?": {"Onde está a estação mais próxima?"},
    "I am hungry.": {"Estou com fome.", "Eu estou com fome."},
    "What is your name?": {"Qual é o seu nome?", "Qual é seu nome?", "Como você se chama?"},
    "I don't understand.": {"Eu não entendo.", "Não entendo.", "Eu não compreendo."},
    "Can you help me?": {"Você pode me ajudar?", "Pode me ajudar?"},
    "Good night.": {"Boa noite.", "Boa noite!"},
    "How much does it cost?": {"Quanto custa?", "Quanto custa isso?"},
    "I have never been to Brazil.": {"Eu nunca estive no Brasil.", "Nunca estive no Brasil."},
    "Do you speak English?": {"Você fala inglês?"},
    "Open the window, please.": {"Abra a janela, por favor."},
    "I would like a cup of coffee, please.": {"Eu gostaria de uma xícara de café, por favor."},
    "My brother lives in a small house near the river.": {
        f"Meu irmão {lives} {house} perto do rio."
        for lives in ("vive", "mora")
        for house in ("em uma pequena casa", "em uma casa pequena", "numa pequena casa")
    },
    "The European Commission presented a new proposal on the protection of personal data.": {
        f"A Comissão Europeia apresentou uma nova proposta {on} {protection} dos dados pessoais."
        for on in ("sobre a", "relativa à")
        for protection in ("protecção", "proteção")
    },
    "Room 4512 is on the second floor.": {
        f"{begin} 4512 {verb} no segundo andar."
        for begin in ("O quarto", "A sala", "Sala", "Quarto")
        for verb in ("está", "fica", "é")
    },
}


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(threads=1)


def test_names_and_sizes() -> None:
    assert DEFAULT_MODEL in bundled_models()
    sizes = {
        name: sum(path.stat().st_size for path in (BUNDLED / name).iterdir())
        for name in bundled_models()
    }
    assert all(size <= 16 * MEGABYTE for size in sizes.values()), sizes
    assert sum(sizes.values()) <= 40 * MEGABYTE, sizes


@pytest.mark.parametrize("command", ["translate", "fill", "score", "plan"])
def test_help_names_the_default_model(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert f"Default: {DEFAULT_MODEL}," in " ".join(capsys.readouterr().out.split())


def test_the_torch_engine_says_that_a_bundled_model_has_no_weights(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, line = error_line(["translate", "--engine", "torch", os.devnull], capsys)
    assert status == 1
    assert line.endswith(
        "the torch engine needs model.safetensors, which is missing; an exported model runs with "
        "native or onnx"
    )


@pytest.mark.parametrize("name", bundled_models())
def test_each_says_what_it_is(name: str) -> None:
    directory = find_model(name)
    card = (directory / CARD).read_text(encoding="utf-8")
    assert "CC BY 2.0 FR" in card
    assert "Tatoeba" in card
    description = json.loads((directory / CONFIG).read_bytes())
    languages = description["source_language"], description["target_language"]
    assert name == f"{'-'.join(languages)}-{description['order']}"
    # Made somewhere, but of no interest where.
    assert not re.search(r"/(home|root|work|Users)/", json.dumps(description) + card)


@pytest.mark.parametrize("english", PORTUGUESE)
def test_sentences_in_portuguese(translator: Translator, english: str) -> None:
    assert translator.translate(english).text in PORTUGUESE[english]


def test_from_both_ends() -> None:
    with Translator.load("en-pt-2x1", threads=1) as both_ends:
        translations = both_ends.translate(list(PORTUGUESE))
    found = dict(zip(PORTUGUESE, (each.text for each in translations), strict=True))
    others = {english: text for english, text in found.items() if text not in PORTUGUESE[english]}
    assert others == {}


def test_alone_as_in_a_batch(translator: Translator) -> None:
    together = translator.translate(list(PORTUGUESE))
    alone = [translator.translate([english])[0] for english in PORTUGUESE]
    assert [each.text for each in together] == [each.text for each in alone]


def test_the_command_needs_no_model() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bothends", "translate"],
        input="Where is the nearest station?\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() in PORTUGUESE["Where is the nearest station?"]


def test_the_demo_runs_without_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('the demo is for the runtime alone')\n")
    program = "from bothends.cli import run; run(['demo', '--rounds', '1'])"
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Onde está a estação mais próxima?" in done.stdout
    for beam in "14":
        for order in "1x1", "2x1":
            assert re.search(
                rf"^ +{beam} +{order} +\d+\.\d +\d+\.\d ms +\d+\.\d\dx$", done.stdout, re.M
            )
