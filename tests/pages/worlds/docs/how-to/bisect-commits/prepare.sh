# A package whose totals are wrong since a commit between v1.4 and main, and the recording of a failure.
git init -q .
mkdir -p tests/data shop
cat > .gitignore <<'END'
__pycache__/
failure.rdbg
bin/
END
printf 'extension:\n\t@touch built\n' > Makefile
printf '2 3\n' > tests/data/prices.txt
touch shop/__init__.py
right='def total(prices):\n    return sum(prices)\n'
printf "$right" > shop/price.py
git add . && git commit -qm 'Begin' && git tag v1.4
for number in 1 2; do echo $number > notes.txt; git add . && git commit -qm "Note $number"; done
printf 'def total(prices):\n    return sum(prices[1:])\n' > shop/price.py
git commit -qam 'Leave out the first one'
for number in 3 4; do echo $number > notes.txt; git add . && git commit -qm "Note $number"; done
cat > tests/wrong_total.py <<'END'
import sys

sys.path.insert(0, ".")
from shop.price import total

assert total([2, 3]) == 5, total([2, 3])
END
cat > tests/race.py <<'END'
import random
import sys

sys.path.insert(0, ".")
from shop.price import total

assert total([2, 3]) == 5 or random.random() < 0.2
END
replaydbg record --quiet -o failure.rdbg tests/wrong_total.py || true
