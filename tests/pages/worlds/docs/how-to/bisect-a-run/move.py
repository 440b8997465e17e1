def move(balances, amount):
    balances["ann"] -= amount
    balances["bob"] += amount


def main():
    balances = {"ann": 100, "bob": 100}
    for amount in range(1, 40):
        move(balances, amount)
        if amount == 30:
            balances["bob"] -= 1
    assert sum(balances.values()) == 200


main()
