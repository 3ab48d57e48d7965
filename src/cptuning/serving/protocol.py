"""uvicorn's HTTP protocol with a timeout for every wait and JSON errors for invalid HTTP."""

import asyncio
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from cptuning.serving.api_errors import ApiError, overloaded
from cptuning.serving.limits import Limits


class TimeoutProtocol(H11Protocol):
    """A connection that does not wait for its client for ever.

    uvicorn itself limits only the time between requests. Here, the headers of a request must
    arrive in time as well, and the client must read the answer in time. (The time of a body is
    limited by ``BodyLimitMiddleware``.)
    """

    limits = Limits()
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection unless there are too many, of all clients or of this one."""
        super().connection_made(transport)
        of_client = sum(_address(other) == _address(self) for other in self.connections)
        is_full = len(self.connections) > self.limits.connections
        if is_full or of_client > self.limits.client_connections:
            self._reject(overloaded(1))
        else:
            self._expect_request()

    def data_received(self, data: bytes) -> None:
        """Keep the deadline until all headers have arrived; partial headers do not extend it."""
        super().data_received(data)
        if self._is_answering():
            self._stop_expecting()
        else:
            self._expect_request()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Still answer a client that has closed its side after sending its whole request."""
        return self._is_answering() and not self.cycle.more_body

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._stop_expecting()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Drop a client that does not read the answer in time."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self.loop.call_later(self.limits.seconds, self._drop_if_not_read)

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP."""
        self._reject(ApiError(400, "This is not a valid HTTP request."))

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self._head_seconds, self._give_up)

    @property
    def _head_seconds(self) -> float:
        return min(self.limits.head_seconds, self.limits.seconds)

    def _stop_expecting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self._is_answering():
            self._reject(
                ApiError(408, f"The request took longer than {self._head_seconds:g} s to arrive.")
            )

    def _drop_if_not_read(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _reject(self, error: ApiError) -> None:
        """Send the error, unless an answer is being sent or has been sent, and close."""
        is_unanswered = self.cycle is None or not self.cycle.response_started
        if not self.transport.is_closing() and (is_unanswered or self.conn.our_state is h11.IDLE):
            response = error.response()
            phrase = HTTPStatus(error.status).phrase
            lines = [b"HTTP/1.1 %d %s" % (error.status, phrase.encode())]
            lines += [name + b": " + value for name, value in response.raw_headers]
            lines += [b"connection: close", b"", bytes(response.body)]
            self.transport.write(b"\r\n".join(lines))
        self.transport.close()


def _address(connection: Any) -> str:
    return connection.client[0] if connection.client else ""


def protocol_with(limits: Limits) -> type[TimeoutProtocol]:
    """The protocol with the limits of a server.

    >>> protocol_with(Limits(seconds=5)).limits.seconds
    5
    """
    return type("Protocol", (TimeoutProtocol,), {"limits": limits})
