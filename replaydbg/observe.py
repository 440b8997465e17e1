"""Write the moment of the recording beside what logging and tracing libraries write; outside a recording do nothing.

Each adapter adds `replaydbg=run-12:4711:0`, and notes the message or the trace's id at that moment. So a log line leads
back: `replaydbg seek run-12 4711:0`, `replaydbg seek run-12 "@log:lost update"`, `replaydbg seek run-12 @trace:4bf9`.
None of the libraries is imported.
"""

from replaydbg import moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "replaydbg"
"""The name of the attribute, key or tag."""


class LogFilter:
    """A filter of the standard library's `logging`: gives each record the attribute `replaydbg`.

    `handler.addFilter(LogFilter())`, and `%(replaydbg)s` in the format. The attribute is "" outside a recording.
    """

    def filter(self, record: "Any") -> bool:
        """Return True: no record is dropped."""
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - logging reports arguments that do not fit, when it formats the record
            text = str(record.msg)
        record.replaydbg = moment("log", text)
        return True


def add_moment(logger: "Any", method: str, event: "dict[str, Any]") -> "dict[str, Any]":
    """Add the key `replaydbg` to an event of structlog: a processor."""
    if place := moment("log", str(event.get("event", ""))):
        event[NAME] = place
    return event


class SpanMoments:
    """A span processor of OpenTelemetry: gives each span the attribute `replaydbg`.

    `provider.add_span_processor(SpanMoments())`, before the one that exports.
    """

    def on_start(self, span: "Any", parent_context: "Any" = None) -> None:
        """Set the attribute, and note the trace's id in hexadecimal."""
        if place := moment("trace", format(span.get_span_context().trace_id, "032x")):
            span.set_attribute(NAME, place)

    def _on_ending(self, span: "Any") -> None:
        pass

    def on_end(self, span: "Any") -> None:
        """Do nothing."""

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Return True: nothing is held back."""
        return True


def tag_event(event: "dict[str, Any]", hint: "dict[str, Any]") -> "dict[str, Any]":
    """Add the tag `replaydbg` to an event of Sentry: `sentry_sdk.init(before_send=tag_event)`."""
    shown = event.get("message") or (event.get("logentry") or {}).get("message") or _exception(event)
    if place := moment("log", str(shown)):
        event.setdefault("tags", {})[NAME] = place
    return event


def _exception(event: "dict[str, Any]") -> str:
    values = (event.get("exception") or {}).get("values") or [{}]
    return f"{values[-1].get('type', '')}: {values[-1].get('value', '')}"
