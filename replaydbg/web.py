"""Middleware that marks the requests of a recorded web application; outside a recording it does nothing.

The beginning and the end of each request get a moment: `replaydbg requests run-12` lists them, and
`replaydbg seek run-12 "@request:7 GET /orders"` leads to one. A request has failed if its status is 500 or higher, if
an exception left the application, or if that gave no status at all: `@failed:GET` leads to it, and
`replaydbg record --keep-failing-requests` keeps the recording of such a process.
It imports no other library.
"""
# Everything passes through unchanged: what the server gives to the application, and what that returns and raises.

import sys
from itertools import count

from replaydbg import moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from typing import Any

BEGUN, ENDED, FAILED = "request", "response", "failed"
"""The kinds of the moments at which a request begins, ends, and has failed."""
_LONGEST_METHOD, _LONGEST_PATH, _LONGEST_RESULT = 20, 200, 100
"""Characters: strangers choose the method and the path."""
_FAILING = 500
"""The first status of a server's error."""

_numbers = count(1)
"""The numbers of requests, which are those of this process; a forked child goes on where its parent was."""


class WSGIMiddleware:
    """A WSGI application that marks the requests of another one: `app.wsgi_app = WSGIMiddleware(app.wsgi_app)`."""

    def __init__(self, app: "Callable[..., Iterable[bytes]]") -> None:
        self.app = app

    def __call__(self, environ: "dict[str, Any]", start_response: "Callable[..., Any]") -> "Iterable[bytes]":
        """Return what the application returns; wrapped if the server reads it piece by piece, to mark its end."""
        if not _is_recorded():
            return self.app(environ, start_response)
        path = f"{environ.get('SCRIPT_NAME', '')}{environ.get('PATH_INFO', '')}"
        request = _Request(environ.get("REQUEST_METHOD", ""), _decoded(path))

        def starting(status: "Any", *others: "Any", **named: "Any") -> "Any":
            request.status = status
            return start_response(status, *others, **named)

        try:
            body = self.app(environ, starting)
        except BaseException as error:
            request.end(error)
            raise
        # Servers treat these in their own ways: the length of a list, a file that the kernel sends.
        if type(body) in (list, tuple) or _is_file(body, environ):
            request.end()
            return body
        return (_SizedBody if hasattr(body, "__len__") else _Body)(body, request)


class _Body:
    """The body of a response that the application makes while it is sent."""

    def __init__(self, body: "Iterable[bytes]", request: "_Request") -> None:
        self._body, self._request = body, request
        self._pieces: Iterator[bytes] | None = None

    def __iter__(self) -> "Iterator[bytes]":
        return self

    def __next__(self) -> bytes:
        try:
            if self._pieces is None:
                self._pieces = iter(self._body)
            return next(self._pieces)
        except StopIteration:
            self._request.end()
            raise
        except BaseException as error:
            self._request.end(error)
            raise

    def close(self) -> None:
        """Close the application's body, if it can be closed: the server has stopped reading."""
        try:
            if (close := getattr(self._body, "close", None)) is not None:
                close()
        except BaseException as error:
            self._request.end(error)
            raise
        self._request.is_left = True
        self._request.end()


class _SizedBody(_Body):
    """One with a length, which a server may ask for: if there is a single piece, it knows the number of bytes."""

    def __len__(self) -> int:
        return len(self._body)  # type: ignore[arg-type]


class ASGIMiddleware:
    """An ASGI application (version 3) that marks the requests and websockets of another one.

    `app.add_middleware(ASGIMiddleware)`, or `app = ASGIMiddleware(app)`.
    """

    def __init__(self, app: "Callable[..., Awaitable[None]]") -> None:
        self.app = app

    async def __call__(
        self, scope: "dict[str, Any]", receive: "Callable[..., Any]", send: "Callable[..., Awaitable[Any]]"
    ) -> None:
        """Run the application; `lifespan`, and all else that is not a request, passes through."""
        kind = scope.get("type")
        if kind not in ("http", "websocket") or not _is_recorded():
            await self.app(scope, receive, send)
            return
        request = _Request(scope.get("method", "WEBSOCKET"), scope.get("path", ""))

        async def sending(message: "Any") -> "Any":
            sent = message.get("type") if isinstance(message, dict) else None
            if sent in ("http.response.start", "websocket.http.response.start"):
                request.status = message.get("status")
            elif sent in ("websocket.accept", "websocket.close"):
                request.status = sent.partition(".")[2]
            return await send(message)

        async def receiving() -> "Any":
            message = await receive()
            if isinstance(message, dict) and message.get("type") in ("http.disconnect", "websocket.disconnect"):
                request.is_left = True
            return message

        try:
            await self.app(scope, receiving, sending)
        except BaseException as error:
            request.end(error)
            raise
        request.end()


class _Request:
    """A request that has begun."""

    def __init__(self, method: object, path: object) -> None:
        text = f"{_shown(method, _LONGEST_METHOD)} {_shown(path, _LONGEST_PATH)}"
        self._text = f"{next(_numbers)} {text}"
        self._has_ended = False
        self.status: object = None
        """The status that the application has given; None: none yet."""
        self.is_left = False
        """Whether nobody waits for the response any more: one without a status has not failed then."""
        moment(BEGUN, self._text)

    def end(self, error: BaseException | None = None) -> None:
        """Mark the end: the application has returned, or raised, perhaps after a body that was read to its end."""
        if self._has_ended and error is None:
            return
        self._has_ended = True
        has_failed, result = _result(self.status, error)
        if self.status is None and error is None:  # the server answers in its own way, mostly with 500
            has_failed = not self.is_left
        text = f"{self._text} {result}"
        moment(FAILED if has_failed else ENDED, text)
        if has_failed:
            # The recorder writes it into a file of its own, which stays if the process is killed.
            shown = text.replace("\\", "\\\\").replace('"', '\\"')
            sys.audit("replaydbg.mark", f'{{"do": "failed request", "text": "{shown}"}}')


def _result(status: object, error: BaseException | None) -> "tuple[bool, str]":
    """Return whether the request has failed, and its status, or the type of the exception."""
    if error is None:
        number = _number(status)
        shown = str(number) if number else _shown("" if status is None else status, _LONGEST_RESULT)
        return number >= _FAILING, shown or "none"
    name = _shown(type(error).__name__, _LONGEST_RESULT)
    # The server cancels what nobody waits for any more, and a body that is not read to its end.
    return name not in ("CancelledError", "GeneratorExit"), name


def _number(status: object) -> int:
    """Return the number of a status such as 200 or `200 OK`; 0: it has none."""
    if isinstance(status, int):
        return int(status)
    digits = status[:3] if isinstance(status, str) else ""
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _decoded(path: str) -> str:
    """Return the path of WSGI, whose characters are bytes."""
    try:
        return path.encode("latin-1").decode("utf-8", "replace")
    except UnicodeError:
        return path


def _shown(given: object, longest: int) -> str:
    """Return a text with printable characters only, without spaces, and no longer than that."""
    text = _text(given).replace(" ", "%20")
    is_cut, text = len(text) > longest, text[:longest]
    if not text.isprintable():
        text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
        is_cut, text = is_cut or len(text) > longest, text[:longest]
    return f"{text}..." if is_cut else text


def _text(given: object) -> str:
    try:
        return given if type(given) is str else str(given)
    except Exception:  # noqa: BLE001 - the application's own, which the server may never meet
        return type(given).__name__


def _is_file(body: object, environ: "dict[str, Any]") -> bool:
    wrapper = environ.get("wsgi.file_wrapper")
    return isinstance(wrapper, type) and isinstance(body, wrapper)


def _is_recorded() -> bool:
    answer: list[bool] = []
    sys.audit("replaydbg.recorded", answer)
    return bool(answer)
