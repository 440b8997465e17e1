import os
import sys

requests, asks = os.pipe()
answers, out = os.pipe()


def bank():
    """Subtract each payment from a balance, and answer with the balance."""
    balance = 100
    while request := os.read(requests, 8):
        amount = int(request)
        balance -= amount
        if balance == 50:
            # A fee that nobody has heard of.
            balance -= 10
        os.write(out, b"%07d\n" % balance)


def main():
    expected = 100
    for amount in (10, 20, 20):
        expected -= amount
        os.write(asks, b"%07d\n" % amount)
        amount = int(os.read(answers, 8))
        assert amount == expected, f"{amount}, not {expected}"


if not os.fork():
    os.close(asks)
    bank()
    sys.exit()
os.close(requests)
try:
    main()
finally:
    os.close(asks)
    os.wait()
