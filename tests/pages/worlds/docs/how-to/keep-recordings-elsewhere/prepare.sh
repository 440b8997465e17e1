mkdir -p ~/buckets/bucket
printf 'raise ValueError("no bread")\n' > shop.py
store=~/.local/share/replaydbg/recordings
replaydbg record --quiet shop.py || true
mv $store/run-1.rdbg $store/run-12.rdbg
printf 'def test_one():\n    assert 0\n' > test_one.py
