"""Requests and their answers in JSON-RPC, and the versions of the Model Context Protocol.

Since version 2026-07-28 each request says in `_meta` which version it is of. Clients of earlier versions begin with
`initialize`. Both are served, also at the same time.
"""

from __future__ import annotations

from replaydbg.classes import dataclass, field
from replaydbg.mcp.message_lines import INVALID_REQUEST, DamagedLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = "2026-07-28"
"""The version whose requests are self-contained."""

EARLIER = ("2025-11-25", "2025-06-18", "2024-11-05")
"""Versions that begin with `initialize`, newest first. 2025-03-26 demands batches, which the next one took back."""

METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR, UNSUPPORTED_VERSION = -32601, -32602, -32603, -32022

_META = "io.modelcontextprotocol/"

RequestId = str | int


class RequestRefused(Exception):
    """A request is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


@dataclass(slots=True, eq=False)
class AgentRequest:
    """A request."""

    id: RequestId
    method: str
    params: dict[str, Any]
    is_cancelled: bool = False
    """Whether it shall end as soon as possible, or not begin."""

    @property
    def meta(self) -> dict[str, Any]:
        """What the request says of itself."""
        found = self.params.get("_meta")
        return found if isinstance(found, dict) else {}

    @property
    def is_modern(self) -> bool:
        """Whether it is of a version whose requests are self-contained."""
        return f"{_META}protocolVersion" in self.meta

    @property
    def progress_token(self) -> RequestId | None:
        """The name under which its progress is to be reported; None: it is not."""
        token = self.meta.get("progressToken")
        return token if isinstance(token, (str, int)) and not isinstance(token, bool) else None

    def check_version(self) -> None:
        """Raise RequestRefused if a self-contained request is of another version, or lacks a field."""
        version = self.meta[f"{_META}protocolVersion"]
        if version != VERSION:
            supported = {"supported": [VERSION, *EARLIER], "requested": version}
            raise RequestRefused(UNSUPPORTED_VERSION, "Unsupported protocol version", supported)
        if not isinstance(self.meta.get(f"{_META}clientCapabilities"), dict):
            raise RequestRefused(INVALID_PARAMS, f"_meta needs an object '{_META}clientCapabilities'.")


@dataclass(frozen=True, slots=True)
class AgentNotice:
    """A notification: a message that is not answered."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InvalidMessage:
    """A message that is answered with an error at once."""

    id: RequestId | None
    """None: the message has none that could be read."""
    code: int
    reason: str


def message_of(value: object) -> AgentRequest | AgentNotice | InvalidMessage | None:
    """Return what a line of JSON is; None: a response, which is ignored, as this server asks its client for nothing."""
    if isinstance(value, DamagedLine):
        return InvalidMessage(None, value.code, value.reason)
    if not isinstance(value, dict):
        kind = "a batch of messages" if isinstance(value, list) else shown(value)
        return InvalidMessage(None, INVALID_REQUEST, f"A message must be one object (got {kind}).")
    named = value.get("id")
    is_id = isinstance(named, (str, int)) and not isinstance(named, bool)
    number = named if is_id else None
    if value.get("jsonrpc") != "2.0":
        return InvalidMessage(number, INVALID_REQUEST, f"jsonrpc must be '2.0' (got {shown(value.get('jsonrpc'))}).")
    if "method" not in value and ("result" in value or "error" in value):
        return None
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str):
        return InvalidMessage(number, INVALID_REQUEST, f"A message needs a string 'method' (got {shown(method)}).")
    if "id" in value and number is None:
        return InvalidMessage(None, INVALID_REQUEST, f"id must be a string or an integer (got {shown(named)}).")
    if not isinstance(params, dict):
        if number is None:
            return None  # a notification is never answered
        return InvalidMessage(number, INVALID_PARAMS, f"params must be an object (got {shown(params)}).")
    return AgentNotice(method, params) if number is None else AgentRequest(number, method, params)


def shown(value: object) -> str:
    """Return a value for a message: of a list or an object its kind, since it may be nested too deeply for more."""
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else f"{value!r:.80}"


def agreed_version(wanted: object) -> str:
    """Return the version that `initialize` agrees on: the one that is wanted, or the newest with `initialize`."""
    return wanted if isinstance(wanted, str) and wanted in EARLIER else EARLIER[0]


def result_of(request: AgentRequest, body: dict[str, object], server: dict[str, object]) -> dict[str, object]:
    """Return the message with the result of a request; `server`: how the server names itself."""
    if request.is_modern:
        body = {"resultType": "complete", **body, "_meta": {f"{_META}serverInfo": server}}
    return {"jsonrpc": "2.0", "id": request.id, "result": body}


def error_of(
    number: RequestId | None, code: int, text: str, data: dict[str, object] | None = None
) -> dict[str, object]:
    """Return the message with an error; None: it is of no request that could be read."""
    error: dict[str, object] = {"code": code, "message": text, **({"data": data} if data is not None else {})}
    return {"jsonrpc": "2.0", **({"id": number} if number is not None else {}), "error": error}
