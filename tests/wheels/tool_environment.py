"""A tool environment, as pipx and uv make it, records programs of environments that have nothing of replaydbg."""

import venv
from collections.abc import Mapping
from pathlib import Path

from tests.wheels.commands import Failed, run

DJANGO = """\
import random
import django
from django.conf import settings
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite"}},
                   ROOT_URLCONF=__name__, SECRET_KEY=str(random.random()), USE_TZ=True, ALLOWED_HOSTS=["*"])
django.setup()
from django.db import connection, models
from django.http import JsonResponse
from django.test import Client
from django.urls import path
from django.utils import timezone

class Order(models.Model):
    amount = models.FloatField()
    at = models.DateTimeField(default=timezone.now)
    class Meta:
        app_label = "shop"

def orders(request):
    Order.objects.create(amount=random.random())
    return JsonResponse({"orders": [[each.amount, str(each.at)] for each in Order.objects.all()]})

urlpatterns = [path("orders/", orders)]
with connection.schema_editor() as editor:
    editor.create_model(Order)
for _ in range(3):
    print(Client().get("/orders/").json())
"""
FASTAPI = """\
import asyncio, random, time
import httpx, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

class Order(BaseModel):
    amount: float
    at: float = 0.0

app = FastAPI()

@app.post("/orders")
async def place(order: Order) -> Order:
    await asyncio.sleep(random.random() / 100)
    return Order(amount=order.amount, at=time.time())

async def main() -> None:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", loop="asyncio"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        answers = [client.post("/orders", json={"amount": random.random()}) for _ in range(5)]
        for each in await asyncio.gather(*answers):
            print(each.status_code, each.json())
    server.should_exit = True
    await serving

asyncio.run(main())
"""
PANDAS = """\
import numpy as np
import pandas as pd

frame = pd.DataFrame({"city": ["Bern", "Genf", "Bern"], "amount": np.random.default_rng().normal(size=3)})
frame["at"] = pd.Timestamp.now()
frame.to_csv("sales.csv", index=False)
print(pd.read_csv("sales.csv").groupby("city")["amount"].sum(), frame.sample(2))
"""
PROGRAMS = {
    "django": (["django"], DJANGO),
    "fastapi": (["fastapi", "httpx", "uvicorn"], FASTAPI),
    "pandas": (["pandas"], PANDAS),
}
REPLAYS = 3


def try_tool_environment(work: Path, tool: Path, env: Mapping[str, str]) -> None:
    """Record each program by the command at `tool` with the interpreter of its own environment, and replay it.

    Raises Failed.
    """
    for name, (packages, source) in PROGRAMS.items():
        place = work / f"{name}-program"
        venv.create(place / "env", with_pip=True)
        python = place / "env" / "bin" / "python"
        run([str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:", *packages], env, work)
        (place / "prog.py").write_text(source)
        plain = run([str(python), "prog.py"], env, place)
        (place / "shop.sqlite").unlink(missing_ok=True)
        ways = {
            "named": (["env/bin/python", "prog.py"], {}),
            "activated": (["prog.py"], {"VIRTUAL_ENV": str(place / "env")}),
        }
        for way, (words, variables) in ways.items():
            own = {**env, **variables}
            recorded = run([str(tool), "record", "-q", "-o", way, *words], own, place)
            if len(recorded.splitlines()) != len(plain.splitlines()):
                raise Failed(f"{name} prints something else recorded:\n{recorded}\nand unrecorded:\n{plain}")
            for _ in range(REPLAYS):
                if run([str(tool), "replay", "-q", f"{way}.rdbg"], env, place) != recorded:
                    raise Failed(f"the replay of {name} prints something else")
            (place / "shop.sqlite").unlink(missing_ok=True)
        print(f"{name}: recorded in its own environment in {len(ways)} ways, {REPLAYS} equal replays each", flush=True)
