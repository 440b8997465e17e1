import random

accounts = {"ann": 500, "bob": 500}
chance = random.Random(1)


def fee(a):
    accounts[a] -= 1


def pay(a, b, amount):
    accounts[a] -= amount
    accounts[b] += amount


for number in range(5_000):
    pay("ann", "bob", chance.randrange(10))
    pay("bob", "ann", chance.randrange(10))
    if number == 4_000:
        fee("ann")
assert sum(accounts.values()) == 1000, accounts
