"""The public Python SDK, unchanged: python python.py URL TOKEN '[["tools/list"], ["tools/call", NAME, ARGUMENTS], …]' [MODE]

Prints one line of JSON for each step: {"result": …} or {"error": {"code", "message", "data"}}. MODE is the SDK's own: auto by
default, which begins with the stateless revision.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def failed(error: BaseException) -> dict:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    inner = getattr(error, "error", error)
    return {
        "error": {
            "code": getattr(inner, "code", None),
            "message": str(getattr(inner, "message", inner)),
            "data": getattr(inner, "data", None),
        }
    }


def say(value: dict) -> None:
    print(json.dumps(value), flush=True)


async def main(url: str, token: str, steps: str, mode: str = "auto") -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode) as client:
            for method, *rest in json.loads(steps):
                try:
                    result = await (client.list_tools() if method == "tools/list" else client.call_tool(*rest))
                    say({"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)})
                except Exception as error:
                    say(failed(error))


try:
    asyncio.run(main(*sys.argv[1:]))
except BaseException as error:
    say(failed(error))
