# A repository whose orders are wrong since a commit after v1.4.
mkdir -p shop tests
cat > .gitignore <<'END'
__pycache__/
.pytest_cache/
bin/
test-results/
failing-runs/
pyproject.toml
END
touch shop/__init__.py
cat > shop/orders.py <<'END'
class Order:
    def __init__(self):
        self.total = 0
        self.lines = []

    def add(self, cents):
        self.lines.append(cents)
        self.total += cents

    def apply(self, discounts):
        for each in discounts:
            self.total -= min(each, self.total)

    def reset(self):
        self.lines.clear()
        self.total = sum(self.lines)
END
cat > conftest.py <<'END'
import builtins
import sys

sys.path.insert(0, ".")
builtins.load = list
END
cat > tests/test_orders.py <<'END'
from shop.orders import Order


def test_total():
    order = Order()
    order.add(2)
    order.apply([4])
    assert order.total >= 0
END
git init -q . && git add . && git commit -qm 'Begin' && git tag v1.4
echo one > notes.txt && git add . && git commit -qm 'Note one'
sed -i 's/min(each, self.total)/each/' shop/orders.py && git commit -qam 'Simplify discounts'
echo two > notes.txt && git commit -qam 'Note two'
# What `gh run download` brings.
mkdir -p bin
cat > bin/gh <<'END'
#!/bin/sh
# gh run download NUMBER -n NAME -D DIRECTORY
mkdir -p "$7"
cp -r test-results/. "$7"
END
chmod +x bin/gh
