class Order:
    def __init__(self):
        self.total = 12

    def reset(self):
        self.total = 0


def test_total():
    order = Order()
    order.reset()
    assert order.total == 12
