"""`bothends serve`: a translation server and its page."""

from __future__ import annotations

import re
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated

import typer

from bothends.cli.options import EngineOption, PrecisionOption, ThreadsOption
from bothends.errors import BothendsError, UsageError
from bothends.serve.limits import MEMORY_BYTES, Limits


def serve(
    model: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Directory, bundled model or hf:org/name; may be repeated. Default: all bundled.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one.")
    ] = 8017,
    api_keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of keys, read again when it changes; only clients with one are answered.",
        ),
    ] = None,
    new_key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Add a key to --api-keys, print it, and serve nothing."),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Allow pages of this origin (CORS); may be repeated."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Proxy in front, or network of some, whose X-Forwarded-For tells clients apart; "
            "may be repeated.",
        ),
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Glossary: a file of lines source<TAB>target."),
    ] = None,
    max_characters: Annotated[
        int, typer.Option(min=1, help="Maximum characters per request.")
    ] = Limits.characters,
    max_lines: Annotated[
        int, typer.Option(min=1, help="Maximum lines per request.")
    ] = Limits.lines,
    max_body: Annotated[
        int, typer.Option(min=1, help="Maximum bytes per request.")
    ] = Limits.body_bytes,
    max_beam: Annotated[
        int, typer.Option(min=1, help="Maximum beam size per request.")
    ] = Limits.beam,
    timeout: Annotated[
        float, typer.Option(help="Time limit of a request, in seconds.")
    ] = Limits.seconds,
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Requests that may wait; others get status 503.")
    ] = Limits.waiting_requests,
    memory: Annotated[
        int, typer.Option(min=1, help="Memory for loaded models, in megabytes.")
    ] = MEMORY_BYTES // 1_000_000,
    threads: ThreadsOption = None,
    precision: PrecisionOption = None,
    engine: EngineOption = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_text: Annotated[
        bool, typer.Option("--log-text", help="Log users' text; off by default.")
    ] = False,
) -> None:
    """Serve translations over HTTP, with a page that shows them.

    It offers LibreTranslate's interface, and its own under /v1; /docs describes both.
    """
    if new_key is not None:
        _make_key(api_keys, new_key)
        return
    for package in ("fastapi", "uvicorn", "httptools", "prometheus_client"):
        if find_spec(package) is None:
            raise BothendsError(
                f"serve needs {package}, which is not installed: pip install 'bothends[serve]'"
            )
    if not 0 < timeout <= 1e6:  # no number is neither
        raise UsageError(f"--timeout must be more than 0 and at most a million, not {timeout:g}")
    if log_level not in ("debug", "info", "warning", "error"):
        raise UsageError(f"--log-level {log_level}: expected debug, info, warning or error")
    for address in proxy or ():
        try:
            ip_network(address)
        except ValueError:
            raise UsageError(
                f"--proxy {address}: expected an address or a network, such as 10.0.0.0/8"
            ) from None
    origins = tuple(map(_origin, cors or ()))
    from bothends.documents import Glossary
    from bothends.serve.keys import KeyFile
    from bothends.serve.server import serve as run
    from bothends.serve.service import ServeOptions
    from bothends.translating.load_options import LoadOptions

    limits = Limits(
        characters=max_characters,
        lines=max_lines,
        body_bytes=max_body,
        beam=max_beam,
        seconds=timeout,
        waiting_requests=max_waiting,
    )
    options = ServeOptions(
        models=tuple(model or ()),
        limits=limits,
        memory_bytes=memory * 1_000_000,
        threads=threads,
        load=LoadOptions(engine=engine, precision=precision, threads=1),
        keys=KeyFile(api_keys) if api_keys else None,
        cors=origins,
        proxies=tuple(proxy or ()),
        glossary=Glossary.load(glossary) if glossary else None,
        log_text=log_text,
    )
    run(options, host, port, log_level)


def _origin(text: str) -> str:
    """An origin as browsers send it, who leave out the usual port: it is compared to the letter."""
    if text in ("*", "null"):
        return text
    match = re.fullmatch(r"([a-z][a-z0-9+.-]*://)([^\s/?#@*]+)/?", text.lower())
    if match is None:
        raise UsageError(
            f"--cors {text}: expected an origin, such as https://example.org: a scheme and a host, "
            "a port if need be, and no path; or * for all"
        )
    scheme, host = match.groups()
    return scheme + host.removesuffix({"http://": ":80", "https://": ":443"}.get(scheme, ""))


def _make_key(path: Path | None, name: str) -> None:
    from bothends.serve.keys import add_key

    if path is None:
        raise UsageError("--new-key needs the file to add it to: --api-keys FILE")
    print(add_key(path, name))
