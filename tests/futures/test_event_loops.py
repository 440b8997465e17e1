"""In futures of asyncio programs, what is ready at once comes in any order, and the loop may look later; FIFO stays."""

from pathlib import Path

import pytest

from tests.futures.made import Ground

pytestmark = pytest.mark.slow

TASKS = Path(__file__).parents[2] / "fixtures" / "futures" / "tasks"

RECEIVERS = """import asyncio, socket, time
time.perf_counter()
order = []
async def receive(name, end):
    await asyncio.get_running_loop().sock_recv(end, 5)
    order.append(name)
async def main():
    pairs = [socket.socketpair() for _ in range(3)]
    for pair in pairs:
        pair[0].setblocking(False)
    tasks = [asyncio.create_task(receive(name, pair[0])) for name, pair in zip("abc", pairs)]
    await asyncio.sleep(0)
    for _, end in pairs:
        end.send(b"x")
    await asyncio.gather(*tasks)
    for pair in pairs:
        pair[0].close(), pair[1].close()
asyncio.run(main())
assert order == ["a", "b", "c"], order
"""

TIMERS = """import asyncio, time
time.perf_counter()
order = []
async def slow():
    await asyncio.sleep(0.010)
    order.append("slow")
async def quick():
    await asyncio.sleep(0.004)
    await asyncio.sleep(0.004)
    order.append("quick")
async def main():
    await asyncio.gather(slow(), quick())
asyncio.run(main())
assert order == ["quick", "slow"], order
"""

CALLBACKS = """import asyncio, time
time.perf_counter()
order = []
async def one(name):
    for _ in range(3):
        await asyncio.sleep(0)
    order.append(name)
async def main():
    loop = asyncio.get_running_loop()
    loop.call_soon(order.append, "first")
    loop.call_soon(order.append, "second")
    await asyncio.gather(one("a"), one("b"), one("c"))
asyncio.run(main())
assert order == ["first", "second", "a", "b", "c"], order
"""


def test_what_is_ready_at_once_comes_in_any_order(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, RECEIVERS)

    found = ground.futures(ground.event("time.perf_counter"), 40, "--shrink", "-o", "kept")

    assert found["inconclusive"] == 0 and found["failed"] > 0 and found["passed"] > 0, found["groups"]
    texts = {group["message"] for group in found["groups"] if group["verdict"] == "failed"}
    assert "['c', 'b', 'a']" in texts and len(texts) == 5
    assert all(each["is_confirmed"] for each in found["deciding"])
    assert {each["kind"] for one in found["deciding"] for each in one["switches"]} == {"order"}


def test_all_orders_are_tried_systematically(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, RECEIVERS)

    found = ground.futures(ground.event("time.perf_counter"), 100, "--systematic", "0")

    assert found["systematic"]["left"] == 0
    assert len({group["last_line"] for group in found["groups"]}) == 6


def test_timers_end_in_another_order_if_the_loop_looks_later(tmp_path: Path) -> None:
    ground = Ground.passing(tmp_path, TIMERS)

    found = ground.futures(ground.event("time.perf_counter"), 64, "--shrink", "-o", "kept")

    assert found["inconclusive"] == 0 and found["failed"] > 0 and found["passed"] > 0
    (deciding,) = found["deciding"]
    assert deciding["is_confirmed"] and {each["kind"] for each in deciding["switches"]} == {"pause"}
    assert ground.replay(deciding["recording"]).status == 1


def test_callbacks_run_in_the_order_in_which_they_were_scheduled(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, CALLBACKS)

    found = ground.futures(ground.event("time.perf_counter"), 40)

    assert (found["passed"], found["failed"]) == (40, 0), found["groups"]


def test_a_recording_with_chaos_has_other_orders_too(tmp_path: Path) -> None:
    text = RECEIVERS.replace("assert order == ['a', 'b', 'c'], order", "").rpartition("assert")[0] + "print(order)\n"
    orders = set()
    for seed in range(8):
        ground = Ground.make(tmp_path, text, f"--chaos={seed}")
        orders.add(ground.replay("one.rdbg").stdout)
        (tmp_path / "one.rdbg").unlink()

    assert len(orders) > 1


@pytest.mark.parametrize("program", sorted(TASKS.glob("*.py")), ids=lambda path: path.stem)
def test_a_bug_of_tasks_is_found_from_a_passing_run(program: Path, tmp_path: Path) -> None:
    ground = Ground.passing(tmp_path, program.read_text())

    found = ground.futures("@start", 200, "-o", "kept")

    assert found["inconclusive"] == 0
    assert found["failed"] > 0 and found["passed"] > 0
    failing = next(group for group in found["groups"] if group["verdict"] == "failed")
    assert failing["exception"] == "AssertionError"
    assert ground.replay(failing["recordings"][0]).status == failing["status"] == 1
