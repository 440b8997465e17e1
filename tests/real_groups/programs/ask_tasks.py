"""Have twenty tasks done: unrecorded."""

from tasks import add

orders = [add.delay(number, number) for number in range(20)]
print(sum(each.get(timeout=60) for each in orders))
