"""The two graphs of a model on disk: as they are, or compressed.

    encoder.onnx, decoder.onnx          read where they lie: mapped into memory
    encoder.onnx.gz, decoder.onnx.gz    a fifth smaller if they are in int8

Most weights of a row are far smaller than its largest, so that eight bits hold about six and a half
bits of information, which gzip gets out. Engines need files: compressed graphs are unpacked to a
temporary directory whenever a model is loaded, for as long as that takes. What is mapped by then
stays readable.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bothends.errors import BothendsError
from bothends.storage.digests import check_content, check_file

ENCODER = "encoder.onnx"
DECODER = "decoder.onnx"
GRAPHS = (ENCODER, DECODER)
#: What the name of a compressed graph has besides.
COMPRESSED = ".gz"
COMPRESSED_GRAPHS = (ENCODER + COMPRESSED, DECODER + COMPRESSED)

#: `compress` takes a bit at least for each byte: what grows more than that is a trap.
_LARGEST_GROWTH = 10
#: What zlib calls the format of gzip, with its checksum.
_GZIP = 16 + zlib.MAX_WBITS

#: What `unpack_ahead` has begun, by the file that holds it.
_ahead: dict[Path, Future[bytes]] = {}


@dataclass(frozen=True)
class GraphFile:
    """A graph that can be read from `path`; messages name the file where it is `stored`."""

    stored: Path
    path: Path


def stored_graph(directory: Path, name: str) -> Path:
    """The file that holds a graph: compressed only where neither graph is plain."""
    directory = Path(directory)
    compressed = directory / (name + COMPRESSED)
    plain = any((directory / each).is_file() for each in GRAPHS)
    return compressed if not plain and compressed.is_file() else directory / name


def is_compressed(stored: Path) -> bool:
    return stored.suffix == COMPRESSED


def missing_graphs(directory: Path) -> list[str]:
    """The names of those graphs that a model lacks."""
    return [name for name in GRAPHS if not stored_graph(directory, name).is_file()]


@contextmanager
def readable_graphs(directory: Path) -> Iterator[tuple[GraphFile, GraphFile]]:
    """The encoder's and the decoder's graph, which are as they were written."""
    encoder, decoder = (stored_graph(directory, name) for name in GRAPHS)
    for path in (encoder, decoder):
        if not path.is_file():
            raise BothendsError(
                f"{directory}: {path.name} is missing; `bothends export {directory}` writes it"
            )
    if not is_compressed(encoder):
        for path in (encoder, decoder):
            check_file(path)
        yield GraphFile(encoder, encoder), GraphFile(decoder, decoder)
        return
    with _temporary_directory() as place:
        graphs = GraphFile(encoder, place / ENCODER), GraphFile(decoder, place / DECODER)
        with ThreadPoolExecutor(len(graphs)) as threads:
            ahead = [_ahead.pop(graph.stored, None) for graph in graphs]
            contents = [
                begun or threads.submit(_unpacked, graph.stored)
                for begun, graph in zip(ahead, graphs, strict=True)
            ]
            for graph, content in zip(graphs, contents, strict=True):
                _write(graph.path, content.result())
        yield graphs


def unpack_ahead(directory: Path) -> None:
    """Begin to unpack the graphs of a model that is about to be loaded, if they are compressed.

    That takes long and does not hold Python's lock: imports go on meanwhile, on another core.
    """
    threads = ThreadPoolExecutor(len(GRAPHS))
    for stored in (stored_graph(directory, name) for name in GRAPHS):
        if is_compressed(stored):
            _ahead[stored] = threads.submit(_unpacked, stored)
    threads.shutdown(wait=False)


def compress(content: bytes) -> bytes:
    """A graph as its compressed file holds it; the same bytes for the same graph."""
    # Weights repeat nothing: only how often each value occurs can be used.
    packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP, zlib.DEF_MEM_LEVEL, zlib.Z_HUFFMAN_ONLY)
    return packer.compress(content) + packer.flush()


@contextmanager
def _temporary_directory() -> Iterator[Path]:
    try:
        place = tempfile.TemporaryDirectory(prefix="bothends-", ignore_cleanup_errors=True)
    except OSError as error:
        raise BothendsError(f"no place to unpack a compressed model: {error}; set TMPDIR") from None
    with place as name:
        yield Path(name)


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise BothendsError(
            f"{path.parent}: cannot be written ({error.strerror}); a compressed model is unpacked "
            "there, and TMPDIR names another place"
        ) from None


def _unpacked(stored: Path) -> bytes:
    try:
        packed = stored.read_bytes()
    except OSError as error:
        raise BothendsError(f"{stored}: cannot be read ({error.strerror})") from None
    check_content(stored, packed)
    try:
        return _unpack(packed)
    except (zlib.error, ValueError) as error:
        raise BothendsError(f"{stored}: damaged, not a compressed graph ({error})") from None


def _unpack(packed: bytes) -> bytes:
    """What `packed` holds; a ValueError if it is cut off, goes on, or is a trap."""
    unpacker = zlib.decompressobj(_GZIP)
    # In one call: between two, it would wait for Python's lock.
    content = unpacker.decompress(packed, _LARGEST_GROWTH * len(packed))
    if unpacker.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {_LARGEST_GROWTH} times its size")
    if unpacker.unused_data:
        raise ValueError("it goes on behind its end")
    if not unpacker.eof:
        raise ValueError("it ends too early")
    return content
