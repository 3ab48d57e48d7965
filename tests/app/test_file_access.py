"""Files of the page: whose they are, and what becomes of them when the process is killed."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.standstill import start_python

from cptuning.app.file_access import FileAccessMiddleware, folder_of
from cptuning.app.session import Session
from cptuning.app.temporary_files import remove_abandoned

OWNER = "cptuning-visitor=owner"


def answer(path, cookie=""):
    """The status and the headers of what a page behind the middleware answers."""

    async def page(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask():
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "path": path, "headers": [(b"cookie", cookie.encode())]}
        await FileAccessMiddleware(page)(scope, None, send)
        return sent[0]["status"], dict(sent[0]["headers"])

    return asyncio.run(ask())


@pytest.fixture
def file():
    """The path of a file of the owner's session."""
    session = Session()
    session.visitor = "owner"
    yield session.file("examples.csv")
    session.close()


@pytest.mark.parametrize("route", ["/gradio_api/file=", "/file=", "/gradio_api/file/"])
@pytest.mark.parametrize(
    ("cookie", "status"),
    [(OWNER, 200), (f"a=b; {OWNER}", 200), ("cptuning-visitor=other", 403), ("", 403)],
)
def test_a_download_belongs_to_its_session(file, route, cookie, status):
    assert answer(f"{route}{file}", cookie)[0] == status


def test_no_way_leads_out_of_a_visitors_folder(file):
    mine = folder_of("owner")
    for path in (
        mine,  # the folder itself
        f"{mine}-and-more/a",
        f"{mine}/../{folder_of('other').name}/a",
        f"{mine}/../../owner",
        "/etc/passwd",
        "http://127.0.0.1:1/",
        "",
    ):
        assert answer(f"/gradio_api/file={path}", OWNER)[0] == 403, path


def test_a_new_visitor_gets_a_cookie_that_scripts_cannot_read():
    first, second = (answer("/")[1][b"set-cookie"] for _ in range(2))
    assert first != second
    assert first.endswith(b"; Path=/; HttpOnly; SameSite=Lax")
    assert len(first.partition(b";")[0]) >= len("cptuning-visitor=") + 43  # 256 bits
    assert b"set-cookie" not in answer("/", OWNER)[1]


MAKER = """
import time
from cptuning.app.temporary_files import gradio_folder
gradio_folder().mkdir()
print(gradio_folder(), flush=True)
time.sleep(600)
"""


def test_what_a_killed_page_leaves_is_removed_by_the_next_one(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    killed, living = (start_python(MAKER, env=environment) for _ in range(2))
    try:
        gone, kept = (Path(one.stdout.readline().strip()) for one in (killed, living))
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        (tmp_path / "cptuning-app-of-somebody-else").mkdir()
        assert gone.is_dir()
        remove_abandoned(tmp_path)
        assert not gone.parent.exists()
        assert kept.is_dir()
        assert (tmp_path / "cptuning-app-of-somebody-else").is_dir()
    finally:
        for process in (killed, living):
            process.kill()
            process.communicate()


def test_a_page_that_ends_takes_its_files_along(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    code = MAKER.replace("time.sleep(600)", "")
    process = start_python(code, env=environment)
    said, errors = process.communicate()
    assert process.returncode == 0, errors
    assert said.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
