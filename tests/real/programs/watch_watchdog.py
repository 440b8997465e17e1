# mypy: ignore-errors
# ruff: noqa
"""watchdog: an observer of a folder in which files come, change, move and go; by polling or by inotify, as asked."""

import sys
import threading
import time
from pathlib import Path

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserver

folder = Path("watched")
folder.mkdir()
seen = []
heard = threading.Condition()


class Handler(FileSystemEventHandler):
    def on_any_event(self, event):
        with heard:
            seen.append((event.event_type, event.is_directory, Path(event.src_path).name))
            heard.notify_all()


def wait_for(kind, name):
    with heard:
        assert heard.wait_for(lambda: any(each[0] == kind and each[2] == name for each in seen), 20), (kind, name, seen)


observer = PollingObserver(timeout=0.05) if sys.argv[1] == "polling" else Observer()
observer.schedule(Handler(), str(folder), recursive=True)
observer.start()
for number in range(5):
    (folder / f"file{number}").write_text(str(time.time()))
    wait_for("created", f"file{number}")
(folder / "below").mkdir()
wait_for("created", "below")
(folder / "file0").rename(folder / "moved")
wait_for("moved", "file0")
(folder / "file1").write_text("a longer text\n" * 3)
wait_for("modified", "file1")
(folder / "file2").unlink()
wait_for("deleted", "file2")
observer.stop()
observer.join()
for each in seen:
    print(each)
print("the observer has ended")
