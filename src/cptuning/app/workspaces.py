"""The work of each visitor, kept under a secret key of the visitor's browser."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from time import monotonic

from cptuning.app.session import Session

# After the last action of a visitor.
HOURS_KEPT = 12
MOST_KEPT = 200


class Workspaces:
    """Sessions that a reload of the page finds again, and nobody without their key.

    Those that were not used for hours are deleted and, of too many, the one unused for longest.

    >>> workspaces, session = Workspaces(), Session()
    >>> session.key = workspaces.new_key()
    >>> workspaces.keep(session)
    >>> workspaces.find(session.key) is session, workspaces.find("another key")
    (True, None)
    """

    def __init__(
        self,
        most: int = MOST_KEPT,
        seconds: float = HOURS_KEPT * 3600,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._kept: OrderedDict[str, tuple[Session, float]] = OrderedDict()
        self._lock = Lock()

    @staticmethod
    def new_key() -> str:
        """A key that nobody can guess."""
        return secrets.token_urlsafe(32)

    def keep(self, session: Session) -> None:
        """Keep a session under its key from now on."""
        with self._lock:
            self._kept[session.key] = session, self._clock()
            self._kept.move_to_end(session.key)
        self._delete_old()

    def find(self, key: str | None) -> Session | None:
        """The session of this key, if it is still kept."""
        self._delete_old()
        with self._lock:
            kept = self._kept.get(key or "")
        return kept[0] if kept else None

    def _delete_old(self) -> None:
        old = []
        with self._lock:
            latest = self._clock() - self._seconds
            while self._kept:
                key, (session, used) = next(iter(self._kept.items()))
                if used >= latest and len(self._kept) <= self._most:
                    break
                old.append(session)
                del self._kept[key]
        for session in old:
            session.close()
