"""Errors as clients see them: a status and one sentence, as JSON."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from starlette.responses import Response

from cptuning.errors import CPTuningError


class ApiError(Exception):
    """A request that is rejected, and why.

    >>> raise ApiError(404, "There is no model 'shop' here: see /models.")
    Traceback (most recent call last):
    ...
    cptuning.serving.api_errors.ApiError: There is no model 'shop' here: see /models.
    """

    def __init__(
        self, status: int, sentence: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = dict(headers or {})

    def response(self) -> Response:
        r"""The error as a response, in ASCII so that it can be sent whatever it quotes.

        >>> ApiError(400, "No text: \ud800.").response().body
        b'{"error": "No text: \\ud800."}'
        """
        body = json.dumps({"error": str(self)}).encode()
        return Response(body, self.status, self.headers, media_type="application/json")


def overloaded(seconds: float) -> ApiError:
    """The error for a request that the queue has no room for.

    >>> overloaded(2.3).status, overloaded(2.3).headers
    (429, {'Retry-After': '3'})
    """
    wait = min(60, max(1, int(-(-seconds // 1))))
    return ApiError(
        429, f"The server is overloaded: try again in {wait} s.", {"Retry-After": str(wait)}
    )


@asynccontextmanager
async def answered_within(seconds: float) -> AsyncIterator[None]:
    """Inside, what takes longer or is a mistake of the user's becomes an error for the client."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise ApiError(
            504, f"The answer took longer than {seconds:g} s: try again later."
        ) from None
    except CPTuningError as error:
        raise ApiError(409, str(error)) from error
