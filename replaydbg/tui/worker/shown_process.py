"""State of a process in the terminal UI besides its session: marks with their notes, values seen, and comparisons."""

from __future__ import annotations

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Moment
from replaydbg.errors import ReplaydbgError, UsageError
from replaydbg.tui.view_model import HeapAnswer
from replaydbg.tui.worker.heap_queries import SnapshotPair
from replaydbg.tui.worker.mark_notes import MarkNote, load_notes, save_notes
from replaydbg.tui.worker.scene_builder import SceneBuilder


class ShownProcess:
    """One process of a group that was shown, or the only one."""

    def __init__(self, session: Session) -> None:
        """Add the marks that were saved beside the recording to the session."""
        self.scene_builder = SceneBuilder()
        self.memory = SnapshotPair()
        """The snapshots of the last heap comparison."""
        self.compared: HeapAnswer | None = None
        """The last heap comparison; None: the heap of the present position is shown."""
        self.first = 1
        """The line of the run at which the timeline begins."""
        self.heap_seconds = 0.0
        """How long it took to read the heap the last time."""
        self.writers: dict[str, str] = {}
        """The writers of changed values in that comparison, as far as known."""
        self.known_points: frozenset[int] = frozenset()
        """The breakpoints whose hits were looked for."""
        self._kept = load_notes(session.path)
        for note in self._kept:
            try:
                session.marks.add(note.name, Moment(note.event, note.step))
            except UsageError:
                continue  # another program wrote it there; our own file will not contain it
            self.scene_builder.notes[note.name] = note.text

    def keep_notes(self, session: Session) -> None:
        """Save the marks if they have changed. Raises ReplaydbgError if they cannot be saved."""
        notes = self.scene_builder.notes
        marks = tuple(
            MarkNote(name, moment.event, moment.step, notes.get(name, ""))
            for name, moment in session.marks.moments.items()
        )
        if marks == self._kept:
            return
        self._kept = marks
        try:
            save_notes(session.path, marks)
        except OSError as error:
            raise ReplaydbgError(
                f"Cannot save the marks; they last only for this session: {error.strerror}."
            ) from error
