"""Each adapter with its real library: what is written has the moment, and the moment has what is written."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.observe.test_moment import recorded, seen

pytestmark = pytest.mark.slow

PROGRAMS = {
    "logging": """import logging
from replaydbg.observe import LogFilter
handler = logging.StreamHandler(__import__("sys").stdout)
handler.addFilter(LogFilter())
handler.setFormatter(logging.Formatter("%(message)s replaydbg=%(replaydbg)s"))
logging.getLogger().addHandler(handler)
def transfer():
    logging.getLogger("bank").warning("lost %s of %d", "update", 7)
transfer()
""",
    "structlog": """import structlog
from replaydbg.observe import add_moment
structlog.configure(processors=[add_moment, structlog.processors.KeyValueRenderer()],
                    logger_factory=structlog.PrintLoggerFactory())
def transfer():
    structlog.get_logger().info("lost update", of=7)
transfer()
""",
    "opentelemetry": """from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, ConsoleSpanExporter
from replaydbg.observe import SpanMoments
provider = TracerProvider()
provider.add_span_processor(SpanMoments())
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda span: (
    f"{span.context.trace_id:032x} replaydbg={span.attributes['replaydbg']}\\n"))))
def transfer():
    with provider.get_tracer("bank").start_as_current_span("transfer"):
        pass
transfer()
provider.shutdown()
""",
    "sentry_sdk": """import sentry_sdk
from sentry_sdk.transport import Transport
from replaydbg.observe import tag_event
class Printed(Transport):
    def capture_envelope(self, envelope):
        event = envelope.get_event()
        print(event["exception"]["values"][-1]["value"], "replaydbg=" + event["tags"]["replaydbg"])
sentry_sdk.init(dsn="http://key@127.0.0.1:9/1", transport=Printed, before_send=tag_event, default_integrations=False,
                auto_enabling_integrations=False)
def transfer():
    try:
        raise ValueError("lost update")
    except ValueError as error:
        sentry_sdk.capture_exception(error)
transfer()
""",
}
NOTED = {"opentelemetry": "@trace:{}", "logging": "@log:lost update of 7"}


@pytest.mark.parametrize("library", PROGRAMS)
def test_what_is_written_leads_back(library: str, tmp_path: Path) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")

    printed = recorded(tmp_path, PROGRAMS[library])

    place = printed.partition("replaydbg=")[2].split()[0].strip("'")
    assert place.startswith("one:")
    for moment in (place, NOTED.get(library, "@log:lost update").format(printed.split()[0])):
        stack = seen(tmp_path, moment)
        assert stack[0] == "moment" and "transfer" in stack
