"""The API keys of a server, from the environment, and when they are required."""

import os
import socket
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address

from cptuning.errors import CPTuningError

VARIABLE = "CPTUNING_API_KEYS"
_SHORTEST = 16


class ApiKeys:
    """The API keys that a server accepts; without any, it serves this machine only.

    >>> keys = ApiKeys(["correct horse battery"])
    >>> keys.accepts("correct horse battery"), keys.accepts("guess"), bool(keys), bool(ApiKeys([]))
    (True, False, True, False)
    """

    def __init__(self, keys: list[str]) -> None:
        if any(len(key) < _SHORTEST for key in keys):
            raise CPTuningError(
                f"A key in {VARIABLE} has fewer than {_SHORTEST} characters, which can be guessed: "
                "make one with `openssl rand -hex 32`."
            )
        self._digests = [_digest(key) for key in keys]

    @classmethod
    def from_environment(cls) -> "ApiKeys":
        """The comma-separated keys in the environment variable."""
        named = (key.strip() for key in os.environ.get(VARIABLE, "").split(","))
        return cls([key for key in named if key])

    def __bool__(self) -> bool:
        return bool(self._digests)

    def accepts(self, key: str) -> bool:
        """Whether this is one of the keys, in time that reveals nothing about them."""
        given = _digest(key)
        # All digests are compared, and all are of one length: timing reveals neither the position
        # of a key nor its length.
        return any([compare_digest(given, digest) for digest in self._digests])  # noqa: C419

    def require_for(self, host: str) -> None:
        """Refuse to listen on an address that others can reach, unless there is a key.

        >>> ApiKeys([]).require_for("127.0.0.1")
        >>> ApiKeys([]).require_for("0.0.0.0")
        Traceback (most recent call last):
        ...
        cptuning.errors.CPTuningError: 0.0.0.0 can be reached from other machines: set ...
        """
        if not self and not is_loopback(host):
            raise CPTuningError(
                f"{host} can be reached from other machines: set {VARIABLE} to a secret that "
                "clients must send, or listen on 127.0.0.1."
            )


def is_loopback(host: str) -> bool:
    """Whether a host name or address is reachable from this machine only.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("192.168.0.1")
    (True, True, False)
    """
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError) as error:
        raise CPTuningError(f"There is no address {host!r} to listen on.") from error
    return all(ip_address(address.partition("%")[0]).is_loopback for address in found)


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogateescape")).digest()
