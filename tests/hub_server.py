"""A stand-in for the hub: its interface for downloads and uploads, on a port of this machine."""

import json
import re
import shutil
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from huggingface_hub import constants

MAIN = "main"


@dataclass
class Repository:
    """The folders of its commits, and which commit a branch or a tag stands for."""

    commits: dict[str, Path] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    private: bool = False

    def commit(self, revision: str) -> str | None:
        """The commit of a branch, a tag, or a commit."""
        return revision if revision in self.commits else self.refs.get(revision)


class HubServer:
    """Serves folders as repositories, takes uploads, and remembers what it was asked for."""

    def __init__(self, uploads: Path) -> None:
        self._uploads = uploads
        self._commits = 0
        self.repositories: dict[str, Repository] = {}
        """By id."""
        self.asked: list[str] = []
        """The files that were requested, without the mere questions about them."""
        self.cut_after: int | None = None
        """Break the connection after so many bytes of a file of weights."""
        self.token = "hf_of_the_owner"
        """Who shows it may write, and read what is private."""
        self.messages: list[str] = []
        """Of the commits that were uploaded."""
        self._large: dict[str, bytes] = {}
        """Files that were uploaded on their own, by hash."""

    def add(self, hub_id: str, folder: Path, commit: str, ref: str = MAIN) -> None:
        """Serve a folder under an id, as a branch or a tag."""
        repository = self.repositories.setdefault(hub_id, Repository())
        repository.commits[commit] = folder
        repository.refs[ref] = commit

    def folder(self, hub_id: str, revision: str = MAIN) -> Path:
        """The files of a revision."""
        repository = self.repositories[hub_id]
        return repository.commits[repository.commit(revision) or ""]

    def tree(self, hub_id: str, revision: str) -> list[dict[str, object]]:
        """The files of a repository as the hub lists them."""
        folder = self.folder(hub_id, revision)
        return [
            {
                "type": "file",
                "path": path.relative_to(folder).as_posix(),
                "size": path.stat().st_size,
                "oid": sha256(path.read_bytes()).hexdigest()[:40],
            }
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        ]

    def write(self, hub_id: str, branch: str, lines: list[dict[str, Any]]) -> str:
        """Make a commit of the operations in an upload."""
        repository = self.repositories[hub_id]
        self._commits += 1
        commit = sha256(str(self._commits).encode()).hexdigest()[:40]
        folder = self._uploads / commit
        folder.mkdir(parents=True)
        if branch in repository.refs:
            shutil.copytree(self.folder(hub_id, branch), folder, dirs_exist_ok=True)
        for line in lines:
            kind, value = line["key"], line["value"]
            if kind == "header":
                self.messages.append(value["summary"])
                continue
            place = folder / value["path"]
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "deletedFile":
                place.unlink()
            elif kind == "lfsFile":
                place.write_bytes(self._large[value["oid"]])
            else:
                place.write_bytes(b64decode(value["content"]))
        self.add(hub_id, folder, commit, branch)
        return commit


def _handler(hub: HubServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        # Reading.

        def do_HEAD(self) -> None:
            self._file(body=False)

        def do_GET(self) -> None:
            parts = self._parts()
            if parts[:2] != ["api", "models"]:
                self._file(body=True)
                return
            hub_id, rest = "/".join(parts[2:4]), parts[4:]
            repository = self._readable(hub_id)
            if repository is None:
                return
            kind, revision = rest if len(rest) == 2 else ("revision", MAIN)
            commit = repository.commit(revision)
            if commit is None:
                self._answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            elif kind == "tree":
                self._json(hub.tree(hub_id, revision))
            else:
                siblings = [{"rfilename": file["path"]} for file in hub.tree(hub_id, revision)]
                self._json({"id": hub_id, "sha": commit, "siblings": siblings})

        def _file(self, body: bool) -> None:
            owner, name, _, revision, *path = self._parts()
            hub_id = f"{owner}/{name}"
            repository = self._readable(hub_id)
            if repository is None:
                return
            known = repository.commit(revision)
            if known is None:
                self._answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
                return
            file = repository.commits[known].joinpath(*path)
            if not file.is_file():
                self._answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": known})
                return
            contents = file.read_bytes()
            etag = sha256(contents).hexdigest()
            headers = {"ETag": f'"{etag}"', "X-Repo-Commit": known}
            if not body:
                self._answer(200, contents, headers, send=False)
                return
            hub.asked.append("/".join(path))
            if hub.cut_after is not None and file.suffix == ".safetensors":
                self._answer(200, contents, headers, send=False)
                self.wfile.write(contents[: hub.cut_after])
                self.wfile.flush()
                self.connection.close()
                return
            self._answer(200, contents, headers)

        def _readable(self, hub_id: str) -> Repository | None:
            repository = hub.repositories.get(hub_id)
            if repository is None or (repository.private and not self._is_owner()):
                self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
                return None
            return repository

        # Writing.

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = self._parts()
            if not self._is_owner():
                self._answer(401, b'{"error": "Invalid username or password."}')
            elif parts == ["api", "repos", "create"]:
                self._create(json.loads(body))
            elif parts == ["api", "validate-yaml"]:
                self._validate(json.loads(body)["content"])
            elif parts[-3:] == ["lfs", "objects", "batch"]:
                self._batch(json.loads(body)["objects"])
            else:
                self._change("/".join(parts[2:4]), parts[4], parts[5], body)

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hub._large[self._parts()[-1]] = body
            self._json({})

        def _create(self, wanted: dict[str, Any]) -> None:
            hub_id = f"{wanted['organization']}/{wanted['name']}"
            if hub_id in hub.repositories:
                self._answer(409, json.dumps({"url": f"/{hub_id}"}).encode())
                return
            hub.repositories[hub_id] = Repository(private=wanted.get("visibility") == "private")
            hub.write(hub_id, MAIN, [])
            self._json({"url": f"{self._address()}/{hub_id}"})

        def _validate(self, card: str) -> None:
            found = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
            try:
                data = yaml.safe_load(found[1] if found else "")
            except yaml.YAMLError as error:
                self._answer(400, json.dumps({"errors": [{"message": str(error)}]}).encode())
                return
            warnings = [] if data else [{"message": "empty metadata"}]
            self._json({"errors": [], "warnings": warnings})

        def _batch(self, objects: list[dict[str, Any]]) -> None:
            for one in objects:
                if one["oid"] not in hub._large:
                    one["actions"] = {"upload": {"href": f"{self._address()}/lfs/{one['oid']}"}}
            self._json({"transfer": "basic", "objects": objects})

        def _change(self, hub_id: str, what: str, branch: str, body: bytes) -> None:
            repository = hub.repositories.get(hub_id)
            if repository is None:
                self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            elif what == "preupload":
                files = [
                    {
                        "path": file["path"],
                        "uploadMode": "lfs" if _is_large(file["path"]) else "regular",
                        "shouldIgnore": False,
                    }
                    for file in json.loads(body)["files"]
                ]
                self._json({"files": files})
            elif what == "branch":
                if branch in repository.refs:
                    self._answer(409, b'{"error": "Reference already exists"}')
                    return
                repository.refs[branch] = repository.refs[MAIN]
                self._json({})
            else:
                commit = hub.write(hub_id, branch, [json.loads(line) for line in body.splitlines()])
                url = f"{self._address()}/{hub_id}/commit/{commit}"
                self._json({"commitUrl": url, "commitOid": commit})

        def _parts(self) -> list[str]:
            return [unquote(part) for part in self.path.split("?")[0].strip("/").split("/")]

        def _is_owner(self) -> bool:
            return bool(self.headers.get("Authorization") == f"Bearer {hub.token}")

        def _address(self) -> str:
            return f"http://{self.headers['Host']}"

        def _json(self, value: object) -> None:
            self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def _answer(
            self,
            status: int,
            contents: bytes,
            headers: dict[str, str] | None = None,
            send: bool = True,
        ) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(contents)))
            self.end_headers()
            if send and self.command != "HEAD":
                self.wfile.write(contents)

    return Handler


def _is_large(path: str) -> bool:
    return Path(path).suffix in (".safetensors", ".onnx")


@contextmanager
def served(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Its address while it runs; the hub's library takes it for the hub, and for online."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
