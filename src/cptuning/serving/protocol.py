"""HTTP as uvicorn speaks it, with an end to every wait and JSON for what is no HTTP."""

import asyncio
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from cptuning.serving.api_errors import ApiError, overloaded
from cptuning.serving.limits import Limits


class TimeoutProtocol(H11Protocol):
    """A connection that waits for its client, but not for ever.

    uvicorn itself bounds only the time between requests. Here the head of a request has to come
    in time as well, and an answer to be taken. (A body's time is kept where it is read.)
    """

    limits = Limits()
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, if there are not too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(overloaded(1))
        else:
            self._expect_request()

    def data_received(self, data: bytes) -> None:
        """Let the time run until a whole head has come; more bytes of it do not win more time."""
        super().data_received(data)
        if self._is_answering():
            self._stop_expecting()
        else:
            self._expect_request()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer a client that has said all it wants to say, and only listens now."""
        return self._is_answering() and not self.cycle.more_body

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._stop_expecting()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Give the client time to take the answer, but not for ever."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self.loop.call_later(self.limits.seconds, self._drop_if_not_taken)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._refuse(ApiError(400, "This is no valid HTTP request."))

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.limits.seconds, self._give_up)

    def _stop_expecting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self._is_answering():
            self._refuse(
                ApiError(408, f"The request took longer than {self.limits.seconds:g} s to arrive.")
            )

    def _drop_if_not_taken(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _refuse(self, refusal: ApiError) -> None:
        """Say why, unless an answer is on its way or was given already, and close."""
        is_unanswered = self.cycle is None or not self.cycle.response_started
        if not self.transport.is_closing() and (is_unanswered or self.conn.our_state is h11.IDLE):
            response = refusal.response()
            phrase = HTTPStatus(refusal.status).phrase
            lines = [b"HTTP/1.1 %d %s" % (refusal.status, phrase.encode())]
            lines += [name + b": " + value for name, value in response.raw_headers]
            lines += [b"connection: close", b"", bytes(response.body)]
            self.transport.write(b"\r\n".join(lines))
        self.transport.close()


def protocol_with(limits: Limits) -> type[TimeoutProtocol]:
    """The protocol with a server's own limits.

    >>> protocol_with(Limits(seconds=5)).limits.seconds
    5
    """
    return type("Protocol", (TimeoutProtocol,), {"limits": limits})
