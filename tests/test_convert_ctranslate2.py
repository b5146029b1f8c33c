"""CTranslate2 models, in every storage type: the same words come out of ours."""

from __future__ import annotations

import json
import os
import random
import re
import zipfile
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
from numpy.typing import NDArray

from bothends.convert.argos import convert_argos
from bothends.convert.ctranslate2 import convert_ctranslate2
from bothends.convert.ctranslate2_file import ModelFile, file_content
from bothends.convert.options import ConvertOptions
from bothends.engines.export import export_model
from bothends.errors import BothendsError
from bothends.evaluation.bench.peer_ctranslate2 import convert
from bothends.evaluation.bench.synthetic import random_weights
from bothends.model.config import ModelConfig, preset
from bothends.model.sinusoid import position_encodings
from bothends.model.spec import Network
from bothends.model.weights import Weights, read_weights
from bothends.order import GenerationOrder
from bothends.text.vocabulary_training import VocabularyOptions, train_vocabulary
from bothends.translator import Translator
from foreign_models import odd_lines

SHAPES: dict[str, dict[str, Any]] = {
    "pre-norm": dict(norm="pre", output_bias=True),
    "post-norm, halves": dict(norm="post", sinusoid="halves", activation="gelu"),
    "fairseq's sinusoids": dict(
        norm="pre", sinusoid="tensor2tensor", position_offset=2, activation="silu"
    ),
    "two vocabularies, own output": dict(
        share_embeddings=False, target_vocabulary_size=70, tie_output=False, embedding_scale=False
    ),
}


def lively(config: ModelConfig, attention: float = 6) -> Weights:
    """Weights whose output varies, and sometimes ends."""
    weights = random_weights(config, GenerationOrder(), 0)
    for name in weights:
        if "query" in name or "key_value" in name:
            weights[name] = attention * weights[name]
        elif "embedding" in name and not config.embedding_scale:
            weights[name] = np.float32(config.width**0.5) * weights[name]
    if "output_bias" in weights:
        weights["output_bias"][config.special.end] = 2
    return weights


def rising_and_falling(positions: NDArray[Any]) -> list[int]:
    """The features that rise most and that fall most, from each position to the next."""
    steps, change = np.diff(positions, axis=0), positions[-1] - positions[0]
    rising = np.where((steps > 0).all(axis=0), change, -np.inf).argmax()
    falling = np.where((steps < 0).all(axis=0), change, np.inf).argmin()
    return [int(rising), int(falling)]


def ending(config: ModelConfig) -> Weights:
    """Weights whose every output ends, after ten tokens or so.

    Two features of the decoder, one that rises and one that falls from position to position, are
    left to the positions: no word and no layer writes to them. Norms scale both alike, so that
    their difference stays a clock, and the end symbol is what points along it. Attention is less
    sharp than in `lively`: rounding must not grow until it decides between hypotheses.
    """
    weights = lively(config, attention=4)
    network = Network.of(config, GenerationOrder())
    decoder = network.stacks[1]
    clock = rising_and_falling(position_encodings(np.arange(18), config))
    norms = [decoder.norm] if decoder.norm else []
    for layer in decoder.layers:
        attentions = layer.self_attention, layer.cross_attention
        for projection in (*(each.output for each in attentions), layer.feed_forward.outer):
            weights[projection.weight.name][clock] = 0
            weights[projection.bias.name][clock] = 0
        norms += [layer.self_attention_norm, layer.cross_attention_norm, layer.feed_forward_norm]
    for norm in norms:
        weights[norm.shift.name][clock] = 0
        # Of a post-norm decoder, each layer takes a part of the clock away.
        weights[norm.gain.name][clock] = 3 if config.norm == "post" else 1.6
    for name in {network.output_weight.name, network.target_embedding.weight.name}:
        weights[name][:, clock] = 0
    output = weights[network.output_weight.name]
    output[config.special.end] = 0
    output[config.special.end, clock] = 20, -20
    return weights


def lines_of(config: ModelConfig, count: int = 200) -> list[str]:
    generator = random.Random(1)
    words = [str(number) for number in range(4, config.vocabulary_size)]
    return [" ".join(generator.choices(words, k=generator.randint(1, 9))) for _ in range(count)]


def theirs(directory: Path, lines: list[str], beam: int, limit: int = 20) -> list[str]:
    """What CTranslate2 writes, by our rules of when to stop.

    Without a length penalty it stops as soon as the best candidate ends, and with one when as many
    have ended as the beam is wide, as we do. This one is too small to change a score.
    """
    translator = ctranslate2.Translator(str(directory), compute_type="float32", intra_threads=1)
    results = translator.translate_batch(
        [line.split() for line in lines],
        beam_size=beam,
        length_penalty=1e-9,
        min_decoding_length=0,
        max_decoding_length=limit + 1,
    )
    return [" ".join(result.hypotheses[0][:limit]) for result in results]


def converted(directory: Path, output: Path, options: ConvertOptions | None = None) -> Translator:
    convert_ctranslate2(directory, options or ConvertOptions()).write(output)
    export_model(output, "float32", output)
    return Translator.load(output, threads=1)


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_words_come_out_greedily(name: str, tmp_path: Path) -> None:
    """Of models that mostly do not end, too: greedily, a cut is a cut."""
    config = preset("tiny", vocabulary_size=90, **SHAPES[name])
    convert(config, lively(config), "float32", tmp_path / "ct2")
    lines = lines_of(config)
    translator = converted(tmp_path / "ct2", tmp_path / "ours")
    found = translator.translate(
        lines, split_sentences=False, beam=1, length_penalty=0, max_length=20
    )
    expected = theirs(tmp_path / "ct2", lines, 1)
    assert len(set(expected)) > 50
    assert [" ".join(each.pieces) for each in found] == expected


@pytest.mark.parametrize(
    "precision",
    ["float32", "float16", "bfloat16", "int16", "int8", "int8_float16", "int8_bfloat16"],
)
@pytest.mark.parametrize("name", SHAPES)
def test_the_same_words_come_out_of_a_beam(name: str, precision: str, tmp_path: Path) -> None:
    """All 200 end. What is cut at the limit would rank differently: CTranslate2 counts the token
    that it cuts at, and with us a cut costs nothing. A file in float16 or bfloat16 holds rounded
    sinusoids: with exact ones, 1 to 15 of 200 outputs would be others."""
    config = preset("tiny", vocabulary_size=90, **SHAPES[name])
    convert(config, ending(config), precision, tmp_path / "ct2")
    lines = lines_of(config)
    translator = converted(tmp_path / "ct2", tmp_path / "ours")
    found = translator.translate(
        lines, split_sentences=False, beam=4, length_penalty=0, max_length=40
    )
    assert all(each.finished for each in found)
    stored = translator.description.model.sinusoid_precision
    assert stored == (re.search("b?float16", precision) or ["exact"])[0]
    expected = theirs(tmp_path / "ct2", lines, 4, limit=40)
    assert len(set(expected)) > 50
    assert [" ".join(each.pieces) for each in found] == expected


@pytest.mark.parametrize("precision", ["float32", "float16", "bfloat16", "int16", "int8"])
def test_every_storage_type_is_read_as_it_is_stored(precision: str, tmp_path: Path) -> None:
    config = preset("tiny", vocabulary_size=90, **SHAPES["pre-norm"])
    weights = lively(config)
    convert(config, lively(config), precision, tmp_path / "ct2")
    model = convert_ctranslate2(tmp_path / "ct2", ConvertOptions())
    # Half a step of the largest weight, and a little for the division.
    halves = {"float32": 0, "int16": 0.5 / 1024, "int8": 0.5 / 127}
    halves |= {"float16": 2**-11, "bfloat16": 2**-8}
    steps = 1.01 * halves[precision]
    for name, array in model.weights.items():
        largest = np.abs(weights[name]).max()
        np.testing.assert_allclose(array, weights[name], rtol=0, atol=steps * largest + 1e-9)
        if array.ndim == 2 and steps:
            assert not np.array_equal(array, weights[name])
    assert model.description.model.share_embeddings
    # What is computed from the stored weights in float32 is what CTranslate2 computes from them.
    model.write(tmp_path / "ours")
    export_model(tmp_path / "ours", "float32", tmp_path / "ours")
    lines = lines_of(config)
    found = Translator.load(tmp_path / "ours", threads=1).translate(
        lines, beam=1, length_penalty=0, max_length=20
    )
    expected = theirs(tmp_path / "ct2", lines, 1)
    assert [" ".join(each.pieces) for each in found] == expected


def real_model() -> Path:
    """CTranslate2's own test model: Arabic to English transliteration, character by character."""
    data = os.environ.get("BOTHENDS_DATA")
    roots = [Path(data)] if data else [each / "shared" / "data" for each in Path(__file__).parents]
    for root in roots:
        if (root / "ctranslate2-aren" / "model.bin").is_file():
            return root / "ctranslate2-aren"
    pytest.skip("ctranslate2-aren is not there; name its directory's parent in BOTHENDS_DATA")


@pytest.mark.parametrize("beam", [1, 4])
def test_a_real_model_writes_the_same_words(beam: int, tmp_path: Path) -> None:
    source = real_model()
    letters = (source / "source_vocabulary.txt").read_text(encoding="utf-8").split()[3:40]
    generator = random.Random(1)
    lines = ["آ ت ز م و ن", "آ ت ش ي س و ن"]
    lines += [" ".join(generator.choices(letters, k=generator.randint(2, 9))) for _ in range(198)]
    translator = converted(source, tmp_path / "ours")
    found = translator.translate(
        lines, split_sentences=False, beam=beam, length_penalty=0, max_length=20
    )
    assert [each.text for each in found] == theirs(source, lines, beam)
    assert found[0].text == "a t z m o n"


def argos_package(path: Path, root: Path, precision: str = "int8", prefixed: bool = False) -> str:
    """A package with a random model and a trained SentencePiece model; the prefix of targets."""
    root.mkdir()
    vocabulary = train_vocabulary(
        [line for line in odd_lines(300, seed=2) if line.strip()],
        root / "sentencepiece.model",
        VocabularyOptions(size=420, exact=False),
    )
    config = preset("tiny", vocabulary_size=vocabulary.size, norm="pre", output_bias=True)
    convert(config, lively(config), precision, root / "model")
    pieces = vocabulary.pieces(range(vocabulary.size))
    prefix = pieces[-1] if prefixed else ""
    # OpenNMT's names for what is no text.
    pieces[:4] = ["<blank>", "<unk>", "<s>", "</s>"]
    (root / "model" / "shared_vocabulary.json").unlink()
    (root / "model" / "shared_vocabulary.txt").write_text(
        "\n".join(pieces) + "\n", encoding="utf-8"
    )
    names = dict(unk_token="<unk>", bos_token="<s>", eos_token="</s>", decoder_start_token="<s>")
    flags = dict(add_source_bos=False, add_source_eos=False, layer_norm_epsilon=None)
    (root / "model" / "config.json").write_text(json.dumps({**names, **flags}))
    (root / "metadata.json").write_text(
        json.dumps({"from_code": "en", "to_code": "de", "target_prefix": prefix})
    )
    with zipfile.ZipFile(path, "w") as archive:
        for file in root.rglob("*"):
            archive.write(file, Path("translate-en_de") / file.relative_to(root))
        archive.writestr("translate-en_de/stanza/resources.json", "{}")
    return prefix


@pytest.mark.parametrize("prefixed", [False, True])
def test_an_argos_package(prefixed: bool, tmp_path: Path) -> None:
    import sentencepiece

    root = tmp_path / "parts"
    prefix = argos_package(tmp_path / "en_de.argosmodel", root, prefixed=prefixed)
    model = convert_argos(tmp_path / "en_de.argosmodel", ConvertOptions())
    assert (model.description.source_language, model.description.target_language) == ("en", "de")
    model.write(tmp_path / "ours")
    export_model(tmp_path / "ours", "float32", tmp_path / "ours")
    lines = [line for line in odd_lines(300, seed=9) if line.strip() and len(line) < 50][:60]
    processor = sentencepiece.SentencePieceProcessor(str(root / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(root / "model"), compute_type="float32")
    results = translator.translate_batch(
        [processor.encode(line, out_type=str) for line in lines],
        target_prefix=[[prefix] for _ in lines] if prefix else None,
        beam_size=1,
        min_decoding_length=0,
        max_decoding_length=21,
    )
    ours = Translator.load(tmp_path / "ours", threads=1)
    found = ours.translate(lines, split_sentences=False, beam=1, max_length=20 - bool(prefix))
    skip = 1 if prefix else 0
    expected = [list(result.hypotheses[0][skip:20]) for result in results]
    assert [list(each.pieces) for each in found] == expected
    texts = ["".join(pieces).replace("\u2581", " ").strip() for pieces in expected]
    plain = [(each.text, text) for each, text in zip(found, texts, strict=True) if "<" not in text]
    assert len(plain) > 10
    assert [text for text, _ in plain] == [text for _, text in plain]


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "C:\\evil"])
def test_a_package_that_climbs_out_is_refused(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bad.argosmodel", "w") as archive:
        archive.writestr("package/metadata.json", "{}")
        archive.writestr(zipfile.ZipInfo(name), "x")
    with pytest.raises(BothendsError, match="leads out of it"):
        convert_argos(tmp_path / "bad.argosmodel", ConvertOptions())
    assert [path.name for path in tmp_path.iterdir()] == ["bad.argosmodel"]


def test_a_package_with_a_link_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bad.argosmodel", "w") as archive:
        link = zipfile.ZipInfo("package/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc")
    with pytest.raises(BothendsError, match="leads out of it"):
        convert_argos(tmp_path / "bad.argosmodel", ConvertOptions())


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_package_whose_bytes_are_damaged(kind: int, tmp_path: Path) -> None:
    """Each way of packing has an error of its own for that."""
    path = tmp_path / "bad.argosmodel"
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("package/metadata.json", "{}" + " " * 1000)
        begin = archive.start_dir - archive.infolist()[0].compress_size
    content = bytearray(path.read_bytes())
    for share in (0, 4, 8, 16):
        damaged = content.copy()
        damaged[begin + share : begin + share + 4] = b"\xff" * 4
        path.write_bytes(damaged)
        with pytest.raises(BothendsError, match=r"bad.argosmodel: (damaged|no sentence|not an)"):
            convert_argos(path, ConvertOptions())


def test_errors_name_the_package_and_not_where_it_was_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bad.argosmodel"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("package/metadata.json", "{}")
        archive.writestr("package/sentencepiece.model", "")
        archive.writestr("package/model/model.bin", "truncated")
    with pytest.raises(BothendsError) as caught:
        convert_argos(path, ConvertOptions())
    assert str(caught.value).startswith(f"{path}: package/model/model.bin: ")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    config = preset("tiny", vocabulary_size=60, **SHAPES["pre-norm"])
    convert(config, lively(config), "float32", tmp_path / "ct2")
    return tmp_path / "ct2"


def change(directory: Path, **changes: Any) -> None:
    file = ModelFile.read(directory / "model.bin")
    variables = {
        name: array for name, array in file.variables.items() if changes.get(name, 1) is not None
    }
    variables |= {name: array for name, array in changes.items() if array is not None}
    content = file_content(changes.pop("kind", file.name), file.revision, variables)
    (directory / "model.bin").write_bytes(content)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (
            {"decoder/layer_0/ffn/linear_0/bias": None},
            "variable decoder/layer_0/ffn/linear_0/bias is missing",
        ),
        (
            {"decoder/layer_1/ffn/linear_0/bias": np.zeros(3, np.float32)},
            r"linear_0/bias has shape \(3,\), expected \(256,\)",
        ),
        (
            {"decoder/layer_1/ffn/linear_0/bias": np.full(256, np.nan, np.float32)},
            "variable decoder/layer_1/ffn/linear_0/bias has values that are infinite or not",
        ),
        (
            {"encoder/layer_0/self_attention/relative_position_keys": np.zeros(3, np.float32)},
            "relative_position_keys belongs to a network that is not supported",
        ),
        ({"decoder/alibi": np.array(1, np.int8)}, "decoder/alibi belongs to a network"),
        ({"decoder/num_heads": np.array(2, np.int16)}, "num_heads of encoder .* differ"),
        ({"encoder/activation": np.array(5, np.int8)}, "activation of encoder .* differ"),
    ],
)
def test_what_our_network_lacks_is_named(
    changes: dict[str, Any], complaint: str, good: Path
) -> None:
    change(good, **changes)
    with pytest.raises(BothendsError, match=complaint) as caught:
        convert_ctranslate2(good, ConvertOptions())
    assert str(caught.value).startswith(str(good))


def test_a_decoder_alone_is_refused(good: Path) -> None:
    file = ModelFile.read(good / "model.bin")
    (good / "model.bin").write_bytes(
        file_content("TransformerDecoderSpec", file.revision, file.variables)
    )
    with pytest.raises(BothendsError, match="of kind TransformerDecoderSpec; supported are"):
        convert_ctranslate2(good, ConvertOptions())


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999999])
def test_a_truncated_file_is_an_error(share: float, good: Path) -> None:
    content = (good / "model.bin").read_bytes()
    (good / "model.bin").write_bytes(content[: int(share * len(content))])
    with pytest.raises(BothendsError, match=r"model\.bin: "):
        convert_ctranslate2(good, ConvertOptions())


def test_vocabularies_that_do_not_fit(good: Path) -> None:
    tokens = json.loads((good / "shared_vocabulary.json").read_text())
    (good / "shared_vocabulary.json").write_text(json.dumps(tokens[:-3]))
    with pytest.raises(BothendsError, match="57 tokens, but the model has 60 source words"):
        convert_ctranslate2(good, ConvertOptions())
    (good / "shared_vocabulary.json").unlink()
    with pytest.raises(BothendsError, match="no vocabulary, neither source_vocabulary nor"):
        convert_ctranslate2(good, ConvertOptions())


def test_a_file_is_written_as_it_was_read(good: Path, tmp_path: Path) -> None:
    """Reading and writing are inverse, bit for bit."""
    read = ModelFile.read(good / "model.bin")
    (tmp_path / "again.bin").write_bytes(file_content(read.name, read.revision, read.variables))
    again = ModelFile.read(tmp_path / "again.bin")
    assert again.variables.keys() == read.variables.keys()
    for name, array in read.variables.items():
        assert again.variables[name].dtype == array.dtype
        np.testing.assert_array_equal(again.variables[name], array)


def test_weights_come_through_exactly(good: Path, tmp_path: Path) -> None:
    config = preset("tiny", vocabulary_size=60, **SHAPES["pre-norm"])
    model = convert_ctranslate2(good, ConvertOptions())
    model.write(tmp_path / "ours")
    for name, array in read_weights(tmp_path / "ours", model.description).items():
        np.testing.assert_array_equal(array, lively(config)[name])
