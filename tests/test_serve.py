"""The server's interfaces, over HTTP with the bundled models."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from bothends.documents import Glossary
from bothends.model.bundled import find_model
from bothends.model.directory import CONFIG, read_description, record_model, write_description
from bothends.model.lengths import SHORTEST_SOURCE, LengthStatistics
from bothends.serve.app import create_app
from bothends.serve.detection import SURE, Detected, Detector
from bothends.serve.keys import ApiKeys, add_key
from bothends.serve.limits import Limits
from bothends.serve.service import ServeOptions
from bothends.translator import Translator
from tiny_model import tiny_model

HUNGRY, HUNGER = "I am hungry.", "Estou com fome."
PAIR = {"source": "en", "target": "pt"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(threads=1)


def served(**options: Any) -> TestClient:
    return TestClient(create_app(ServeOptions(**options)), raise_server_exceptions=False)


def error(response: Any, status: int) -> str:
    """The one line of an answer that must have failed."""
    assert response.status_code == status, response.text
    content = response.json()
    assert content.keys() == {"error"}
    assert "\n" not in content["error"]
    assert "Traceback" not in content["error"]
    return str(content["error"])


# LibreTranslate's interface


def test_a_text_as_json(client: TestClient) -> None:
    answer = client.post("/translate", json={"q": HUNGRY, **PAIR})
    assert answer.json() == {"translatedText": HUNGER}


def test_a_text_as_a_form(client: TestClient) -> None:
    answer = client.post("/translate", data={"q": HUNGRY, **PAIR})
    assert answer.json() == {"translatedText": HUNGER}


@pytest.mark.parametrize("format", [None, ""])
def test_no_format_is_text(client: TestClient, format: str | None) -> None:
    answer = client.post("/translate", json={"q": HUNGRY, "format": format, **PAIR})
    assert answer.json() == {"translatedText": HUNGER}


def test_a_form_that_is_not_escaped(client: TestClient) -> None:
    """As `curl -d q='...'` sends it."""
    kind = {"content-type": "application/x-www-form-urlencoded"}
    text = "José is hungry."
    raw = client.post("/translate", content=f"q={text}&source=en&target=pt".encode(), headers=kind)
    assert raw.json() == client.post("/translate", data={"q": text, **PAIR}).json()
    assert "José" in raw.json()["translatedText"]


def test_the_language_of_a_text(client: TestClient) -> None:
    first, *others = client.post("/detect", json={"q": HUNGRY}).json()
    assert first["language"] == PAIR["source"]
    assert first["confidence"] > 50 > others[0]["confidence"]
    (first, *_) = client.post("/detect", data={"q": HUNGER}).json()
    assert first["language"] == PAIR["target"]
    assert client.post("/detect", json={"q": "1 + 1"}).json() == []
    assert error(client.post("/detect", json={"q": ["a"]}), 400)
    assert error(client.post("/detect", json={"q": "x" * 20_001}), 413)


def test_a_source_that_is_detected(client: TestClient) -> None:
    automatic = {**PAIR, "source": "auto"}
    answer = client.post("/translate", json={"q": HUNGRY, **automatic}).json()
    assert answer["translatedText"] == HUNGER
    assert answer["detectedLanguage"]["language"] == PAIR["source"]
    several = client.post("/translate", json={"q": [HUNGRY, HUNGRY], **automatic}).json()
    assert several["detectedLanguage"] == [answer["detectedLanguage"]] * 2
    # What cannot be told goes to the first model
    assert client.post("/translate", json={"q": "1", **automatic}).json() == {"translatedText": "1"}


def test_a_text_that_is_in_the_target_language_already(client: TestClient) -> None:
    automatic = {**PAIR, "source": "auto"}
    text = "Onde fica a estação, por favor? Não sei onde estou."
    answer = client.post("/translate", json={"q": text, "alternatives": 1, **automatic}).json()
    assert (answer["translatedText"], answer["alternatives"]) == (text, [])
    assert answer["detectedLanguage"]["language"] == PAIR["target"]
    # Also among others, even if the language of one cannot be told
    answer = client.post("/translate", json={"q": [text, HUNGRY, "1", text], **automatic}).json()
    assert answer == {"translatedText": [text, HUNGER, "1", text]}


@pytest.mark.parametrize(
    "pair", [("en", "pt-BR"), ("en_US", "pt"), ("EN", "pb"), ("auto", "pt_BR"), ("auto", "pb")]
)
def test_languages_of_regions(client: TestClient, pair: tuple[str, str]) -> None:
    body = dict(zip(("source", "target"), pair, strict=True))
    assert client.post("/translate", json={"q": HUNGRY, **body}).json()["translatedText"] == HUNGER
    v1 = {"text": HUNGRY, **body}
    assert client.post("/v1/translate", json=v1).json()["results"][0]["text"] == HUNGER
    v1["model"] = "en-pt-1x1"
    assert client.post("/v1/translate", json=v1).json()["results"][0]["text"] == HUNGER


def test_a_text_that_is_in_the_target_language_of_a_region_already(client: TestClient) -> None:
    text = "Onde fica a estação, por favor? Não sei onde estou."
    body = {"q": [text, HUNGRY], "source": "auto", "target": "pt-BR"}
    answer = client.post("/translate", json=body).json()
    assert answer["translatedText"] == [text, HUNGER]


@pytest.mark.parametrize("confidence", [79.9, 80.0])
def test_a_text_that_may_be_in_the_target_language_is_translated(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, confidence: float
) -> None:
    other = round(100 - confidence, 1)
    found = [Detected("pt", confidence), Detected("en", other)]
    monkeypatch.setattr("bothends.serve.detection.Detector.detect", lambda self, text: found)
    answer = client.post("/translate", json={"q": HUNGRY, **PAIR, "source": "auto"}).json()
    detected = answer["detectedLanguage"]
    if confidence < SURE:
        assert answer["translatedText"] == HUNGER
        assert detected == {"language": "en", "confidence": other}
    else:
        assert answer["translatedText"] == HUNGRY
        assert detected == {"language": "pt", "confidence": confidence}


@pytest.mark.parametrize("confidence", [79.9, 80.0])
def test_a_text_in_a_language_that_no_model_translates_from(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, confidence: float
) -> None:
    found = [Detected("xx", confidence), Detected("en", 100 - confidence)]
    monkeypatch.setattr("bothends.serve.detection.Detector.detect", lambda self, text: found)
    answer = client.post("/translate", json={"q": HUNGRY, **PAIR, "source": "auto"})
    if confidence < SURE:
        assert answer.json()["translatedText"] == HUNGER
    else:
        assert "no model translates from 'xx' to 'pt'" in error(answer, 400)


def test_texts_of_several_languages_are_translated_by_the_models_of_theirs(tmp_path: Path) -> None:
    """The German model knows no German, and what it writes tells who has written what."""
    german = Path(shutil.copytree(tiny_model("2x1", "int8"), tmp_path / "german"))
    description = read_description(german)
    write_description(german, replace(description, source_language="de", target_language="pt"))
    record_model(german, [CONFIG])
    english = ["I would like to know where the station is.", "He has not been here yet."]
    few_words = ["12", "Tom.", "12"]  # Tom may be a German, but is among the English
    with served(models=("en-pt-1x1", german)) as client:

        def translate(texts: list[str], source: str) -> list[str]:
            body = {"q": texts, "source": source, "target": "pt"}
            found: list[str] = client.post("/translate", json=body).json()["translatedText"]
            return found

        ours, theirs = (translate(["Tom."], each) for each in ("en", "de"))
        assert ours != theirs
        found = translate([*english, GERMAN, *few_words], "auto")
        assert found[2:3] == translate([GERMAN], "de") != translate([GERMAN], "en")
        assert found[:2] + found[3:] == translate(english + few_words, "en")


GERMAN = "Ich möchte wissen, wo der Bahnhof ist und wann der Zug abfährt."


def test_a_language_that_no_model_names_is_not_taken_for_one_that_is_named(
    client: TestClient,
) -> None:
    """Of English and Portuguese alone, this would be English, with more than 90 %."""
    first, *others = client.post("/detect", json={"q": GERMAN}).json()
    assert first["language"] == "de"
    assert first["confidence"] >= SURE
    assert {each["language"] for each in others} == {"en", "pt"}
    answer = client.post("/translate", json={"q": [HUNGRY, GERMAN], **PAIR, "source": "auto"})
    assert "no model translates from 'de' to 'pt'" in error(answer, 400)


def test_a_language_that_is_written_like_that_of_a_model_is_not_refused() -> None:
    """The detector calls both kinds of Norwegian `no`, and Bokmål is what most models call `nb`."""
    text = "Jeg vil gjerne vite hvor jernbanestasjonen ligger, og når toget går i morgen tidlig."
    assert Detector(["en", "de"]).detect(text)[0].language == "no"
    for code in ("no", "nb", "nob_Latn"):
        assert Detector(["en", code]).detect(text)[0].language == code


def test_a_model_of_a_language_that_cannot_be_told_makes_no_text_surely_another() -> None:
    """Upper Sorbian would be taken for a Slavic language that the detector knows."""
    assert {each.language for each in Detector(["en", "hsb"]).detect(GERMAN)} == {"en"}


def test_a_server_without_a_detector_says_so(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bothends.serve.detection.find_spec", lambda name: None)
    assert "py3langid" in error(client.post("/detect", json={"q": HUNGRY}), 501)
    answer = client.post("/translate", json={"q": HUNGRY, **PAIR, "source": "auto"})
    assert answer.json() == {"translatedText": HUNGER}


def test_several_texts(client: TestClient) -> None:
    texts = [HUNGRY, "", "Good night.", HUNGRY]
    expected = {"translatedText": [HUNGER, "", "Boa noite.", HUNGER]}
    assert client.post("/translate", json={"q": texts, **PAIR}).json() == expected
    assert client.post("/translate", data={"q": texts, **PAIR}).json() == expected
    assert client.post("/translate", json={"q": [], **PAIR}).json() == {"translatedText": []}


def test_alternatives(client: TestClient, translator: Translator) -> None:
    one = client.post("/translate", json={"q": HUNGRY, "alternatives": 2, **PAIR}).json()
    ranked = translator.translate(HUNGRY, n_best=3).hypotheses
    texts = dict.fromkeys(each.text for each in ranked)  # two may be spelled in different pieces
    assert [one["translatedText"], *one["alternatives"]] == list(texts)
    two = client.post("/translate", json={"q": [HUNGRY], "alternatives": 2, **PAIR}).json()
    assert two["alternatives"] == [one["alternatives"]]


def test_paragraphs_keep_their_shape(client: TestClient) -> None:
    text = f"{HUNGRY} Good night.\n\n  {HUNGRY}\n"
    answer = client.post("/translate", json={"q": text, **PAIR}).json()
    assert answer["translatedText"] == f"{HUNGER} Boa noite.\n\n  {HUNGER}\n"


def test_html(client: TestClient) -> None:
    body = {"q": f'<p class="x">{HUNGRY}</p><pre>I am code.</pre>', "format": "html", **PAIR}
    expected = f'<p class="x">{HUNGER}</p><pre>I am code.</pre>'
    assert client.post("/translate", json=body).json() == {"translatedText": expected}


def test_languages_and_settings(client: TestClient) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["pt"]},
        {"code": "pt", "name": "Portuguese", "targets": []},
    ]
    settings = client.get("/frontend/settings").json()
    assert settings["language"]["target"] == {"code": "pt", "name": "Portuguese"}
    assert settings["keyRequired"] is False
    assert client.get("/health").json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/", "/health"])
def test_monitors_ask_for_heads(client: TestClient, path: str) -> None:
    head, whole = client.head(path), client.get(path)
    assert (head.status_code, head.headers["content-type"]) == (200, whole.headers["content-type"])
    assert head.headers["content-length"] == whole.headers["content-length"]


# Our own


def test_v1_tells_what_the_translator_tells(client: TestClient) -> None:
    body = {"model": "en-pt-2x1", "text": HUNGRY, "beam": 3, "n_best": 2, "format": "lines"}
    answer = client.post("/v1/translate", json=body).json()
    with Translator.load("en-pt-2x1", threads=1) as translator:
        expected = translator.translate(HUNGRY, beam=3, n_best=2)
    (sentence,) = answer["results"][0]["sentences"]
    assert answer["model"] == "en-pt-2x1"
    assert sentence["source"] == HUNGRY
    assert sentence["tokens"] == list(expected.tokens)
    assert sentence["score"] == pytest.approx(expected.score, abs=1e-4)
    assert sentence["steps"] == expected.steps
    assert [each["text"] for each in sentence["hypotheses"]] == [
        each.text for each in expected.hypotheses
    ]
    # 2x1 writes the first and the last token first, and ends in the middle
    written = sentence["written_in"]
    assert written[0] == written[-1] == 1
    assert (sentence["towards"][0], sentence["towards"][-1]) == ("right", "left")
    assert max(written) in (expected.steps, expected.steps - 1)


@pytest.mark.parametrize("body", [{}, {"beam": 1, "draft": [HUNGER]}])
def test_v1_takes_lines_as_sentences(
    client: TestClient, translator: Translator, body: dict[str, Any]
) -> None:
    line = f"{HUNGRY} Where is the station? Good night."
    answer = client.post("/v1/translate", json={"text": line, "format": "lines", **body}).json()
    expected = translator.translate(line, beam=body.get("beam", 4), split_sentences=False)
    (sentence,) = answer["results"][0]["sentences"]
    assert sentence["tokens"] == list(expected.tokens)
    assert len(sentence["written_in"]) == len(expected.tokens)  # known for one sentence only


def test_v1_takes_a_model_by_name(client: TestClient) -> None:
    answer = client.post("/v1/translate", json={"text": HUNGRY, "model": "en-pt-1x1"}).json()
    assert answer["order"] == "1x1"
    (sentence,) = answer["results"][0]["sentences"]
    assert sentence["written_in"] == list(range(1, len(sentence["tokens"]) + 1))
    assert set(sentence["towards"]) == {"right"}
    loaded = {each["name"]: each["loaded"] for each in client.get("/v1/models").json()}
    assert loaded["en-pt-1x1"]


def events(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_v1_streams_the_state_of_both_strands_after_each_step(client: TestClient) -> None:
    text = f"{HUNGRY} Good night."
    body = {"text": text, "model": "en-pt-2x1", "beam": 1, "stream": True}
    answer = client.post("/v1/translate", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"  # or nginx would collect the events
    assert answer.headers["cache-control"] == "no-cache"
    found = events(answer.text)
    assert found[0] == ("start", {"model": "en-pt-2x1", "order": "2x1", "replayed": True})
    names = [name for name, _ in found]
    assert names.count("sentence") == 2
    assert names[-1] == "result"
    result = found[-1][1]["results"][0]
    for number, sentence in enumerate(result["sentences"]):
        steps = [data for name, data in found if name == "step" and data["sentence"] == number]
        assert len(steps) == sentence["steps"]
        assert steps[0]["state"][0] == sentence["pieces"][0]
        assert steps[0]["state"][-1] == sentence["pieces"][-1]
        assert set(steps[0]["state"][1:-1]) == {None}
        assert [each["towards"] for each in steps[0]["new"]] == ["right", "left"]
        assert steps[-1]["state"] == sentence["pieces"]
        assert steps[-1]["finished"]
        for before, after in pairwise(steps):
            for old, new in zip(before["state"], after["state"], strict=True):
                assert old in (None, new)


def test_v1_glossaries_of_server_and_request(tmp_path: Path) -> None:
    with served(glossary=Glossary({"station": "parada"})) as client:
        body: dict[str, Any] = {"text": "Where is the station?"}
        ours = client.post("/v1/translate", json=body).json()["results"][0]
        body["glossary"] = {"station": "plataforma"}
        theirs = client.post("/v1/translate", json=body).json()["results"][0]
    for result, word in ((ours, "parada"), (theirs, "plataforma")):
        hit = word in result["text"]
        assert result["report"]["glossary_hits"] == hit
        assert result["report"]["glossary_misses"] == (not hit)


def test_v1_keeps_what_a_draft_has_already(client: TestClient) -> None:
    old = f"{HUNGRY} Where is the station?"
    new = f"{HUNGRY} Where is the old station?"
    # one without a shortlist, with which a draft is ignored
    greedy: dict[str, Any] = {"beam": 1, "model": "en-pt-2x1"}

    def sentences(**body: Any) -> list[dict[str, Any]]:
        answer = client.post("/v1/translate", json={**greedy, **body})
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["results"][0]["sentences"]
        return found

    draft = [each["text"] for each in sentences(text=old)]
    expected, drafted = sentences(text=new), sentences(text=new, draft=draft)
    assert [each["text"] for each in drafted] == [each["text"] for each in expected]
    assert all(each["steps_saved"] == 0 for each in expected)
    assert drafted[0]["steps"] == 1  # read once, and right
    assert drafted[0]["steps"] + drafted[0]["steps_saved"] == expected[0]["steps"]
    assert [each["written_in"] for each in drafted] == [each["written_in"] for each in expected]
    alone = sentences(text=HUNGRY, draft=[draft[0], "too many"])
    assert (alone[0]["text"], alone[0]["steps"]) == (draft[0], 1)
    answer = client.post("/v1/translate", json={"text": new, "draft": draft})
    assert "use beam 1, not 4" in error(answer, 400)


def test_v1_alternatives_for_a_part(client: TestClient) -> None:
    translation = "Onde está a estação?"
    body = {
        "source": "Where is the station?",
        "translation": translation,
        "start": 12,
        "end": 19,
        "n_best": 3,
    }
    found = client.post("/v1/alternatives", json=body).json()["alternatives"]
    assert 1 <= len(found) <= 3
    for each in found:
        assert each["text"].startswith("Onde está a ")
        assert each["text"].endswith("?")
        assert each["text"][each["start"] : each["end"]].strip() not in ("", "estação")


def test_v1_alternatives_are_for_sentences(client: TestClient) -> None:
    body = {"source": "a", "translation": "ab " * 100, "start": 0, "end": 2}
    assert "64 tokens" in error(client.post("/v1/alternatives", json=body), 413)
    body["end"] = 10**6
    body["translation"] = "ab"
    assert "not in the translation" in error(client.post("/v1/alternatives", json=body), 400)


@pytest.mark.parametrize("body", [{}, {"format": "markdown"}, {"glossary": {"zebra": "zebra"}}])
def test_v1_cuts_sentences_that_are_longer_than_all_that_the_model_learned_from(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    model = Path(shutil.copytree(find_model(None), tmp_path / "model"))
    lengths = LengthStatistics(mean=5.0, spread=0.1, longest_source=12)
    description = replace(read_description(model), lengths=lengths)
    write_description(model, description)
    record_model(model, [CONFIG])
    # Few enough characters to be taken as they are, if nothing but `max_source_length` counted
    text = "He was hungry, she was tired, they were cold, and we all wanted to go home."
    with served(models=(model,)) as client:
        answer = client.post("/v1/translate", json={"text": text, **body}).json()
    (result,) = answer["results"]
    assert result["report"]["cut_sentences"] == 1
    assert max(len(each["source_pieces"]) for each in result["sentences"]) <= 12
    assert " ".join(each["source"] for each in result["sentences"]) == text
    # By these lengths, a translation has 148 times the tokens of its source
    assert [each["short"] for each in result["sentences"]] == [
        len(each["source_pieces"]) >= SHORTEST_SOURCE for each in result["sentences"]
    ]


# What is refused, and how


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"", "not understood"),
        (b"{", "not understood"),
        (b"\xff\xfe", "not understood"),
        (b"[" * 100_000, "not understood"),
        (b'{"text": ' * 5_000, "not understood"),
        (b'{"text": "\\ud800"}', "not understood"),
        (b'{"text": 5}', "text: expected a text or a list of texts"),
        (b'{"text": null}', "text: expected a text or a list of texts"),
        (b'{"text": ["a", 5, 6]}', "text.1: Input should be a valid string"),
        (b'{"text": "x", "draft": ["a", 5]}', "draft.1: Input should be a valid string"),
        (b'{"text": "x", "beem": 3}', "beem"),
        (b'{"text": "x", "beam": 0}', "beam"),
        (b'{"text": "x", "beam": 17}', "this server allows 16"),
        (b'{"text": "x", "n_best": 9}', "n_best must not exceed the beam"),
        (b'{"text": "x", "beam": 1e400}', "beam"),
        (b'{"text": "x", "length_penalty": NaN}', "length_penalty"),
        (b'{"text": "x", "format": "pdf"}', "format"),
        (b'{"text": "x", "model": "en-pt-3x1"}', "did you mean en-pt-"),
        (b'{"text": "x", "model": "en-pt-1x1", "target": "de"}', "en-pt-1x1 is 'pt', not 'de'"),
        (b'{"text": "x", "model": "en-pt-1x1", "source": "de"}', "en-pt-1x1 is 'en', not 'de'"),
        (b'{"text": "x", "source": "fr", "target": "pt"}', "there is en to pt"),
        (b'{"text": "x", "glossary": {"a\\tb": "c"}}', "tabs"),
    ],
)
def test_v1_says_what_is_wrong(client: TestClient, body: bytes, part: str) -> None:
    assert part in error(client.post("/v1/translate", content=body), 400)
    streamed = body.replace(b'"x"', b'"x", "stream": true')
    assert part in error(client.post("/v1/translate", content=streamed), 400)


def test_libretranslate_says_what_is_wrong(client: TestClient) -> None:
    def post(body: bytes, kind: str) -> Any:
        return client.post("/translate", content=body, headers={"content-type": kind})

    form = "application/x-www-form-urlencoded"
    assert "q" in error(post(b"source=en&target=pt", form), 400)
    assert "say application/json" in error(post(b'{"q": "x", "target": "pt"}', form), 400)
    assert "UTF-8" in error(post(b"q=%ff&source=en&target=pt", form), 400)
    assert "UTF-8" in error(post(b"q=\xff&source=en&target=pt", form), 400)
    assert "application/json" in error(post(b"q: x", "text/yaml"), 415)
    assert error(client.post("/translate", json={"q": "x", "source": "fr", "target": "pt"}), 400)
    assert error(client.get("/translate"), 405)
    assert error(client.get("/nowhere"), 404)
    assert error(client.get("/page/../app.py"), 404)


def test_what_is_too_large_is_refused_whole() -> None:
    with served(limits=Limits(characters=50, lines=3, body_bytes=500)) as client:
        text = "x" * 51
        assert "50" in error(client.post("/translate", json={"q": text, **PAIR}), 413)
        assert "50" in error(client.post("/translate", json={"q": ["x" * 26] * 2, **PAIR}), 413)
        assert "3" in error(client.post("/translate", json={"q": "a\nb\nc\nd", **PAIR}), 413)
        assert "3" in error(client.post("/v1/translate", json={"text": ["a"] * 4}), 413)
        assert "500" in error(client.post("/v1/translate", content=b"x" * 501), 413)
        chunks = (b"x" * 100 for _ in range(100))
        assert "500" in error(client.post("/v1/translate", content=chunks), 413)
        assert client.post("/translate", json={"q": "x" * 50, **PAIR}).status_code == 200


def test_a_narrow_beam_is_the_widest_of_all_interfaces() -> None:
    with served(limits=Limits(beam=2)) as client:
        body = {"text": HUNGRY, "n_best": 2}
        (result,) = client.post("/v1/translate", json=body).json()["results"]
        assert len(result["sentences"][0]["hypotheses"]) == 2
        assert "beam 4" in error(client.post("/v1/translate", json={**body, "beam": 4}), 400)
        asked = {"q": HUNGRY, **PAIR}
        assert client.post("/translate", json=asked).json() == {"translatedText": HUNGER}
        answer = client.post("/translate", json={**asked, "alternatives": 2})
        assert "this server allows 1" in error(answer, 400)
        assert client.get("/frontend/settings").json()["beamLimit"] == 2


def test_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    key = add_key(path, "ann")
    assert key not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    with served(keys=ApiKeys.load(path)) as client:
        body: dict[str, Any] = {"q": HUNGRY, **PAIR}
        assert "wants an API key" in error(client.post("/translate", json=body), 401)
        assert "not known" in error(client.post("/translate", json={**body, "api_key": "x"}), 401)
        assert "not known" in error(client.post("/translate", data={**body, "api_key": "ä"}), 401)
        assert error(client.post("/v1/translate", json={"text": HUNGRY}), 401)
        assert error(client.post("/v1/alternatives", json={}), 401)
        assert client.post("/translate", json={**body, "api_key": key}).status_code == 200
        bearer = {"authorization": f"Bearer {key}"}
        assert client.post("/translate", json=body, headers=bearer).status_code == 200
        answer = client.post("/v1/translate", json={"text": HUNGRY}, headers=bearer)
        assert answer.status_code == 200
        assert client.get("/frontend/settings").json()["keyRequired"] is True


def test_other_origins_may_ask_only_if_they_are_named(client: TestClient) -> None:
    headers = {"origin": "https://example.org", "access-control-request-method": "POST"}
    name = "access-control-allow-origin"
    assert name not in client.options("/translate", headers=headers).headers
    assert name not in client.get("/health", headers=headers).headers
    with served(cors=("https://example.org",)) as open_client:
        assert open_client.options("/translate", headers=headers).headers[name] == (
            "https://example.org"
        )
        assert name not in open_client.get("/health", headers={"origin": "https://x.org"}).headers
        # what a page may need beyond the answer
        shown = open_client.get("/health", headers=headers).headers
        assert "retry-after" in shown["access-control-expose-headers"]


# What operators see


def test_metrics_count_what_happened() -> None:
    with served() as client:
        client.post("/translate", json={"q": [HUNGRY, "Good night."], **PAIR})
        client.post("/v1/translate", content=b"{")
        text = client.get("/metrics").text
    assert 'bothends_requests_total{route="/translate",status="200"} 1.0' in text
    assert 'bothends_requests_total{route="/v1/translate",status="400"} 1.0' in text
    assert 'bothends_lines_total{model="en-pt-1x1"} 2.0' in text
    assert "bothends_batch_lines_sum 2.0" in text
    assert 'bothends_request_seconds_count{route="/translate"} 1.0' in text
    assert "bothends_waiting_requests 0.0" in text


def logged(records: list[logging.LogRecord]) -> str:
    from bothends.serve.logs import JsonLines

    lines = [JsonLines().format(record) for record in records]
    assert all(json.loads(line)["event"] for line in lines)
    return "\n".join(lines)


def test_logs_hold_no_text_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with served() as client:
        client.post("/translate", json={"q": HUNGRY, **PAIR})
        client.post("/translate", json={"q": HUNGRY, "source": HUNGRY})
        client.get(f"/{HUNGRY}?q={HUNGRY}")
    ours = [each for each in caplog.records if each.name == "bothends.serve"]
    text = logged(ours)
    assert '"route": "/translate"' in text
    assert "hungry" not in text
    assert "fome" not in text
    caplog.clear()
    with served(log_text=True) as client:
        client.post("/translate", json={"q": HUNGRY, **PAIR})
    assert HUNGER in logged([each for each in caplog.records if each.name == "bothends.serve"])


def test_a_defect_is_an_answer_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: Any, **names: Any) -> None:
        raise ZeroDivisionError(HUNGRY)

    with served() as client:
        monkeypatch.setattr("bothends.serve.service.translate_texts", fail)
        answer = client.post("/translate", json={"q": HUNGRY, **PAIR})
        monkeypatch.undo()
        assert "defect" in error(answer, 500)
        assert answer.headers["x-request-id"] in answer.text
        text = logged([each for each in caplog.records if each.name == "bothends.serve"])
        assert "ZeroDivisionError" in text
        assert "test_serve.py" in text
        assert HUNGRY not in text
        # and the room is empty again
        assert "bothends_waiting_requests 0.0" in client.get("/metrics").text


def test_the_description_of_the_interface(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert {"/translate", "/languages", "/v1/translate", "/v1/alternatives"} <= set(schema["paths"])
    body = schema["paths"]["/translate"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded"}
    refusals = {
        path: set(verbs["post"]["responses"])
        for path, verbs in schema["paths"].items()
        if "post" in verbs
    }
    assert {path for path, statuses in refusals.items() if "415" in statuses} == {
        "/translate",
        "/detect",
    }
    text = json.dumps(schema)
    names = set(schema["components"]["schemas"])
    assert {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]} <= names


def test_the_page_asks_nobody_else(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    files = Path(create_app.__globals__["PAGE"]).iterdir()
    for file in files:
        assert client.get(f"/page/{file.name}").status_code == 200
        text = file.read_text(encoding="utf-8")
        for outside in ("http://", "https://", "//cdn", "@import"):
            allowed = text.replace("http://www.w3.org/2000/svg", "")
            assert outside not in allowed, f"{file.name} names {outside}"
