"""The server process: its socket, its signals, and uvicorn."""

import asyncio
import signal
import socket
from collections.abc import Callable
from math import ceil
from pathlib import Path

import uvicorn

from cptuning.errors import CPTuningError
from cptuning.serving.api_keys import ApiKeys
from cptuning.serving.application import create_app
from cptuning.serving.limits import Limits
from cptuning.serving.model_registry import ModelRegistry
from cptuning.serving.prometheus import Metrics
from cptuning.serving.protocol import protocol_with
from cptuning.serving.tagging_routes import load_taggers


def serve(
    place: Path,
    *,
    host: str,
    port: int,
    limits: Limits,
    device: str = "auto",
    default: str | None = None,
    announce: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM; SIGHUP reloads the models.

    ``announce`` is called with the models and the address once the server accepts requests.
    """
    keys = ApiKeys.from_environment()
    keys.require_for(host)
    with listening_socket(host, port) as listener:  # Before the models, so that it fails early.
        metrics = Metrics()
        taggers = load_taggers(place, device, limits)
        registry = ModelRegistry(
            place, limits, metrics, device=device, default=default, may_be_empty=bool(taggers)
        )
        names = ", ".join([*(name for name, _ in registry), *taggers])
        config = uvicorn.Config(
            create_app(registry, limits, metrics, keys, taggers),
            http=protocol_with(limits),
            ws="none",
            loop="asyncio",
            log_level="error",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=ceil(limits.seconds),
            # By then, every accepted request is answered or has timed out.
            timeout_graceful_shutdown=ceil(limits.seconds) + 5,
        )
        server = _Server(config, registry, lambda: announce(f"{names} on {url_of(listener)}"))
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """uvicorn with a callback when it has started, and with reloads on SIGHUP."""

    def __init__(
        self, config: uvicorn.Config, registry: ModelRegistry, started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._registry = registry
        self._started = started
        self._reloads: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests."""
        await super().startup(sockets)
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
        self._started()

    def _reload(self) -> None:
        task = asyncio.create_task(self._registry.reload_all())
        self._reloads.add(task)  # asyncio keeps only weak references to tasks.
        task.add_done_callback(self._reloads.discard)


def listening_socket(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free port.

    >>> with listening_socket("127.0.0.1", 0) as listener:
    ...     listening_socket("127.0.0.1", listener.getsockname()[1])
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: Can't listen on 127.0.0.1, port ...: Address already in use.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (")[0]
        raise CPTuningError(f"Can't listen on {host}, port {port}: {why}.") from error


def url_of(listener: socket.socket) -> str:
    """The URL of a listening socket.

    >>> with listening_socket("127.0.0.1", 0) as listener:
    ...     url_of(listener)
    'http://127.0.0.1:...'
    """
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
