# A shop that divides by zero at main, not at v1.4 and on some-branch, and recordings of its failure.
git init -q .
cat > .gitignore <<'END'
*.rdbg
__pycache__/
END
cat > right.py <<'END'
import sys

with open("prices.txt") as file:
    prices = [int(line) for line in file]


def mean(numbers):
    return sum(numbers) // max(1, len(numbers))


total = sum(prices)
# What an order costs on average.
print(mean([each for each in prices if each > 10]))
END
printf '2\n3\n' > prices.txt
sed 's/max(1, len(numbers))/len(numbers)/' right.py > wrong.py
cp right.py shop.py
git add shop.py prices.txt && git commit -qm 'Begin' && git tag v1.4
printf 'one\n' > notes.txt && git add notes.txt && git commit -qm 'Note one'
git branch some-branch
cp wrong.py shop.py && git commit -qam 'Simplify the mean'
printf 'two\n' > notes.txt && git commit -qam 'Note two'
replaydbg record --quiet -o ~/failure.rdbg shop.py || true
cp ~/failure.rdbg failure.rdbg
