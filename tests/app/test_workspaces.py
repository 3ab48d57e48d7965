"""Who keeps a visitor's work, for how long, and who gets it."""

from tests.app.conftest import FILMS

from cptuning.app.session import Session
from cptuning.app.workspaces import Workspaces


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_only_the_key_finds_it():
    workspaces, session = Workspaces(), Session()
    key = session.key = workspaces.new_key()
    assert len(key) >= 43  # 256 bits
    assert key != workspaces.new_key()
    workspaces.keep(session)
    assert workspaces.find(key) is session
    for other in ("", None, key[:-1], workspaces.new_key()):
        assert workspaces.find(other) is None


def test_what_is_not_used_is_deleted_with_its_files():
    clock = Clock()
    workspaces, session = Workspaces(seconds=60, clock=clock), Session()
    session.add(FILMS)
    path = session.file("x")
    path.write_text("x")
    session.key = "key"
    workspaces.keep(session)
    clock.now = 59
    assert workspaces.find("key") is session
    clock.now = 61
    assert workspaces.find("key") is None
    assert session.examples == []
    assert not path.exists()


def test_of_too_many_the_one_unused_for_longest_goes():
    clock = Clock()
    workspaces, sessions = Workspaces(most=2, clock=clock), [Session() for _ in range(3)]
    for number, session in enumerate(sessions[:2]):
        clock.now += 1
        session.key = f"{number}"
        workspaces.keep(session)
    clock.now += 1
    workspaces.keep(sessions[0])
    sessions[2].key = "2"
    workspaces.keep(sessions[2])
    assert [workspaces.find(f"{n}") for n in range(3)] == [sessions[0], None, sessions[2]]
