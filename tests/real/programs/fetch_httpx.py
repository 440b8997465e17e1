# mypy: ignore-errors
# ruff: noqa
"""httpx: a client with cookies, redirects and a stream; then fifty requests at once on asyncio, some too slow."""

import asyncio
import sys

import httpx

site = f"http://127.0.0.1:{sys.argv[1]}"
with httpx.Client(base_url=site, follow_redirects=True) as client:
    print(client.get("/cookie").text, dict(client.cookies), client.get("/redirect").json())
    print(
        client.post("/upload", data={"a": "1"}, files={"file": b"x" * 50_000}).json()["got"],
        client.get("/gzip").text[:20],
    )
    with client.stream("GET", "/chunked") as answer:
        print([*answer.iter_lines()])
    print(client.get("/missing").status_code)


async def one(client, number):
    try:
        path = f"/slow/{0.3 if number % 10 == 0 else 0.001}"
        answer = await client.get(
            path if number % 5 == 0 else "/json", timeout=httpx.Timeout(30, read=0.1 if number % 10 == 0 else 30)
        )
        return answer.text
    except httpx.TimeoutException as error:
        return type(error).__name__


async def main():
    done = []
    limits = httpx.Limits(max_connections=10)
    async with httpx.AsyncClient(base_url=site, limits=limits) as client:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(client, number), name=f"request {number}") for number in range(50)]
            for task in tasks:
                task.add_done_callback(lambda task: done.append(task.get_name()))
    print(done)
    print([task.result() for task in tasks])


asyncio.run(main())
print("everything was fetched")
