"""Ask a recording by the client of the protocol's own package for Python, and print what came as JSON.

python sdk_client.py MODE RECORDING
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import Client, StdioServerParameters  # type: ignore[import-not-found,unused-ignore]


async def main(mode: str, recording: str) -> dict[str, Any]:
    """Return what the client has received; `mode`: `auto`, or `legacy` for versions that begin with `initialize`."""
    amounts: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        amounts.append(progress)

    server = StdioServerParameters(command=sys.executable, args=["-m", "replaydbg", "mcp"])
    async with Client(server, mode=mode) as client:
        tools = await client.list_tools()
        wrote = await client.call_tool("why", {"recording": recording, "expression": "account.balance"})
        wrong = await client.call_tool("why", {"recording": recording, "expression": "nothing"})
        endless = {"recording": recording, "expression": "[None for _ in iter(int, 1)]", "at": "@exc"}
        try:
            await asyncio.wait_for(client.call_tool("check", endless, progress_callback=progressed), 2)
        except TimeoutError:
            amounts.append(2.0)
        after = await client.call_tool("look", {"recording": recording, "expressions": ["number"]})
        return {
            "version": client.protocol_version,
            "tools": len(tools.tools),
            "wrote": wrote.structured_content["recorded"]["write"],
            "wrong": [wrong.is_error, wrong.structured_content["problem"]],
            "amounts": amounts,
            "after": after.structured_content["recorded"]["values"],
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
