"""A small Hugging Face Hub on this machine: the few requests that `huggingface_hub` makes of one.

Repositories have commits and branches; commits are made from what a client uploads. Requests are
kept, so that a test can say what was asked for and what was not.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_of_this_test"


@dataclass
class Repository:
    """Commits by their names, oldest first, and what branches stand for."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    private: bool = False
    gated: bool = False

    def commit(
        self, files: Mapping[str, bytes], branch: str = "main", message: str = "A commit"
    ) -> str:
        number = f"{len(self.commits)} {sorted(files)}"
        name = hashlib.sha1(number.encode()).hexdigest()
        self.commits[name] = dict(files)
        self.branches[branch] = name
        self.messages.append(message)
        return name

    def find(self, revision: str) -> str | None:
        found = self.branches.get(revision, revision)
        return found if found in self.commits else None


class Hub:
    """All repositories, and the requests so far as `METHOD /path`."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.requests: list[str] = []
        self.large_files: dict[str, bytes] = {}
        self.endpoint = ""
        #: a status that every request gets, as of a server that is down
        self.failure: int | None = None

    def repository(self, name: str, files: Mapping[str, bytes]) -> Repository:
        self.repositories[name] = Repository()
        self.repositories[name].commit(files)
        return self.repositories[name]

    @property
    def downloaded(self) -> list[str]:
        """The files that were downloaded."""
        files = [each for each in self.requests if re.match("GET .*/resolve/", each)]
        return [each.rsplit("/", 1)[1] for each in files]


@contextmanager
def running_hub() -> Iterator[Hub]:
    """A hub that answers until the context is left."""
    hub = Hub()

    class Handler(_Handler):
        pass

    Handler.hub = hub
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _RefusalError(Exception):
    def __init__(self, status: int, code: str = "", message: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(self._get)

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        self._answer(self._post)

    def do_PUT(self) -> None:
        self._answer(self._put)

    def _answer(self, method: Any) -> None:
        url = urlsplit(self.path)
        self.path_parts = unquote(url.path)
        self.query = parse_qs(url.query)
        self.hub.requests.append(f"{self.command} {self.path_parts}")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            if self.hub.failure:
                raise _RefusalError(self.hub.failure)
            method(body)
        except _RefusalError as refusal:
            content = json.dumps({"error": refusal.message}).encode()
            headers = {"X-Error-Code": refusal.code, "X-Error-Message": refusal.message}
            self._send(content, refusal.status, {k: v for k, v in headers.items() if v})

    def _send(self, content: bytes, status: int = 200, headers: Any = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _json(self, value: Any) -> None:
        self._send(json.dumps(value).encode(), headers={"Content-Type": "application/json"})

    def _find(self, name: str, revision: str) -> tuple[str, dict[str, bytes]]:
        repository = self.hub.repositories.get(name)
        known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if repository is None or (repository.private and not known):
            raise _RefusalError(404, "RepoNotFound", "Repository not found")
        if repository.gated and not known:
            raise _RefusalError(403, "GatedRepo", "Access to this model is restricted")
        commit = repository.find(revision)
        if commit is None:
            raise _RefusalError(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit, repository.commits[commit]

    def _get(self, body: bytes) -> None:
        path = self.path_parts
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            commit, files = self._find(match[1], match[2] or "main")
            siblings = [{"rfilename": name} for name in sorted(files)]
            self._json({"id": match[1], "sha": commit, "siblings": siblings, "tags": []})
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", path):
            _, files = self._find(match[1], match[2])
            self._json(
                [
                    {"type": "file", "path": name, "size": len(content), "oid": _oid(content)}
                    for name, content in files.items()
                ]
            )
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            commit, files = self._find(match[1], match[2])
            if match[3] not in files:
                raise _RefusalError(404, "EntryNotFound", "Entry not found")
            content = files[match[3]]
            self._send(content, headers={"X-Repo-Commit": commit, "ETag": f'"{_oid(content)}"'})
        else:
            raise _RefusalError(404, message=f"unknown: GET {path}")

    def _post(self, body: bytes) -> None:
        path = self.path_parts
        if path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
            return
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise _RefusalError(401, message="Invalid username or password.")
        if path == "/api/repos/create":
            self._create(json.loads(body))
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/branch/(.+)", path):
            branches = self.hub.repositories[match[1]].branches
            if match[2] in branches:
                raise _RefusalError(409, message="Reference already exists")
            branches[match[2]] = branches["main"]
            self._json({})
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/preupload/(.+)", path):
            self._find(match[1], match[2])
            self._json(
                {
                    "files": [
                        {
                            "path": file["path"],
                            "uploadMode": "lfs" if file["path"].endswith(".onnx") else "regular",
                            "shouldIgnore": False,
                        }
                        for file in json.loads(body)["files"]
                    ]
                }
            )
        elif re.fullmatch(r"/[^/]+/[^/]+\.git/info/lfs/objects/batch", path):
            objects = [
                {
                    "oid": each["oid"],
                    "size": each["size"],
                    "actions": {"upload": {"href": f"{self.hub.endpoint}/lfs/{each['oid']}"}},
                }
                for each in json.loads(body)["objects"]
            ]
            self._json({"transfer": "basic", "objects": objects})
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/(.+)", path):
            self._commit(match[1], match[2], body)
        else:
            raise _RefusalError(404, message=f"unknown: POST {path}")

    def _put(self, body: bytes) -> None:
        self.hub.large_files[self.path_parts.removeprefix("/lfs/")] = body
        self._send(b"")

    def _create(self, wanted: Mapping[str, Any]) -> None:
        name = f"{wanted['organization']}/{wanted['name']}"
        url = f"{self.hub.endpoint}/{name}"
        if name in self.hub.repositories:
            self._send(json.dumps({"error": "You already created it", "url": url}).encode(), 409)
            return
        private = wanted.get("private") is True or wanted.get("visibility") == "private"
        repository = Repository(private=private)
        repository.commit({".gitattributes": b""}, message="initial commit")
        self.hub.repositories[name] = repository
        self._json({"url": url, "name": name})

    def _commit(self, name: str, branch: str, body: bytes) -> None:
        head, files = self._find(name, branch)
        files, message = dict(files), ""
        for line in body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            match entry["key"]:
                case "header":
                    message = value["summary"]
                    if value.get("parentCommit", head) != head:
                        raise _RefusalError(412, message="A commit has happened since")
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.hub.large_files[value["oid"]]
                case "deletedFile":
                    del files[value["path"]]
        commit = self.hub.repositories[name].commit(files, branch, message)
        self._json(
            {"commitUrl": f"{self.hub.endpoint}/{name}/commit/{commit}", "commitOid": commit}
        )


def _oid(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()
