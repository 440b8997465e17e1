# Two recordings that have read a password, as run-12 and, with a child process, run-13.
cat > pay.py <<'END'
import os
import sys

token = os.environ["SHOP_API_TOKEN"]
if sys.argv[1:]:
    if not os.fork():
        os._exit(0)
    os.wait()
print("paid")
END
export SHOP_API_TOKEN=ghp_qZ7xKw93LmP0vT5yRb2Nd8aUcEfGhIjKlMnO
store=~/.local/share/replaydbg/recordings
replaydbg record --quiet pay.py
mv $store/run-1.rdbg $store/run-12.rdbg
replaydbg record --quiet pay.py both
[ -d $store/run-13.rdbgs ] || mv $store/run-*.rdbgs $store/run-13.rdbgs
mkdir -p ~/.ssh
ssh-keygen -q -t ed25519 -N '' -C you@example.org -f ~/.ssh/id_ed25519
