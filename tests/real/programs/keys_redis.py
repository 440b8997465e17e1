# mypy: ignore-errors
# ruff: noqa
"""redis-py: commands, a pipeline, a transaction with a watch, subscribers and blocking pops in threads, asyncio."""

import asyncio
import random
import sys
import threading
import time

import redis
import redis.asyncio

port = int(sys.argv[1])
client = redis.Redis(port=port, decode_responses=True)
print(client.ping(), client.info("server")["process_id"] > 0, client.set("luck", random.random()), client.get("luck"))
with client.pipeline() as pipe:
    for number in range(200):
        pipe.hset("numbers", number, number * number)
    print(sum(pipe.execute()), client.hlen("numbers"))
heard, popped = [], []


def listen():
    subscription = client.pubsub(ignore_subscribe_messages=True)
    subscription.subscribe("news")
    subscribed.set()
    for message in subscription.listen():
        if message["data"] == "end":
            break
        heard.append(message["data"])
    subscription.close()


def pop(name):
    while (item := client.blpop("jobs", timeout=10)) and item[1] != "end":
        popped.append((name, item[1]))
        client.incr("done")


def raise_count():
    for _ in range(20):
        client.transaction(
            lambda pipe: (value := int(pipe.get("count") or 0), pipe.multi(), pipe.set("count", value + 1)), "count"
        )


subscribed = threading.Event()
threads = [threading.Thread(target=listen), *(threading.Thread(target=pop, args=(name,)) for name in "abc")]
threads += [threading.Thread(target=raise_count) for _ in range(3)]
for thread in threads:
    thread.start()
subscribed.wait()
while not client.pubsub_numsub("news")[0][1] or client.info("clients")["blocked_clients"] < 3:
    time.sleep(0.001)
for number in range(30):
    client.rpush("jobs", number)
    client.publish("news", f"{number}: {time.time()}")
client.publish("news", "end")
client.rpush("jobs", "end", "end", "end")
for thread in threads:
    thread.join()
print(heard[:2], len(heard))
print(popped)
print(client.get("done"), client.get("count"))


async def main():
    async with redis.asyncio.Redis(port=port, decode_responses=True) as own:
        got = await asyncio.gather(*(own.incrby("sum", number) for number in range(50)))
        waiter = asyncio.create_task(own.brpop("later", timeout=5))
        while not (await own.info("clients"))["blocked_clients"]:
            await asyncio.sleep(0.001)
        await own.lpush("later", "now")
        return got, await waiter


print(asyncio.run(main()))
try:
    client.execute_command("NOSUCH")
except redis.ResponseError as error:
    print(error)
print("the server was used")
