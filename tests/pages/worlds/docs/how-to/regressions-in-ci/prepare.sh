# A shop with two bugs: one was fixed and came back, the other was fixed.
git init -q .
printf '__pycache__/\n*.html\nci-state/\nrecordings/\n' > .gitignore
mkdir -p shop
touch shop/__init__.py
cat > shop/cart.py <<'END'
def total(cart):
    found = 0
    for item in cart:
        found += item["cents"]
    if cart:
        found += 1
    assert found, 0
    return found
END
cat > run_cart.py <<'END'
import sys

sys.path.insert(0, ".")
from shop.cart import total

print(total([]))
END
git add . && git commit -qm 'Begin'
replaydbg record --quiet run_cart.py || true
mkdir recordings
replaydbg pack run-1 -o recordings/cart.rdbg
for number in 1 2; do echo $number > notes.txt; git add . && git commit -qm "Note $number"; done
sed -i 's/    assert found, 0/    assert found or not cart, 0/' shop/cart.py && git commit -qam 'Guard against an empty cart'
for number in 3 4; do echo $number > notes.txt; git commit -qam "Note $number"; done
sed -i 's/    assert found or not cart, 0/    assert found, 0/' shop/cart.py && git commit -qam 'Simplify totals'
echo 5 > notes.txt; git commit -qam 'Note 5'
