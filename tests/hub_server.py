"""A stand-in for the hub: its interface for downloads, on a port of this machine."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


class HubServer:
    """Serves folders as repositories, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.repositories: dict[str, tuple[Path, str]] = {}
        """Folder and commit by id."""
        self.asked: list[str] = []
        """The files that were requested, without the mere questions about them."""
        self.cut_after: int | None = None
        """Break the connection after so many bytes of a file of weights."""

    def add(self, hub_id: str, folder: Path, commit: str) -> None:
        """Serve a folder under an id."""
        self.repositories[hub_id] = (folder, commit)

    def tree(self, hub_id: str) -> list[dict[str, object]]:
        """The files of a repository as the hub lists them."""
        folder, _ = self.repositories[hub_id]
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


def _handler(hub: HubServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._file(body=False)

        def do_GET(self) -> None:
            parts = self.path.split("?")[0].strip("/").split("/")
            if parts[:2] != ["api", "models"]:
                self._file(body=True)
                return
            hub_id = "/".join(parts[2:4])
            if hub_id not in hub.repositories:
                self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            elif parts[4] == "tree":
                self._answer(200, json.dumps(hub.tree(hub_id)).encode())
            else:
                facts = {"id": hub_id, "sha": hub.repositories[hub_id][1], "siblings": []}
                self._answer(200, json.dumps(facts).encode())

        def _file(self, body: bool) -> None:
            owner, name, _, commit, *path = self.path.split("?")[0].strip("/").split("/")
            folder, known = hub.repositories[f"{owner}/{name}"]
            file = folder.joinpath(*path)
            if commit != known or not file.is_file():
                self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})
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
            if send:
                self.wfile.write(contents)

    return Handler


@contextmanager
def served(hub: HubServer) -> Iterator[str]:
    """Its address while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
