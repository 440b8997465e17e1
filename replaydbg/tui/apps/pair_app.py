"""Two recordings side by side: the same keys move both, and values that differ are marked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from replaydbg.errors import ReplaydbgError
from replaydbg.tui.apps.ending_signals import end_on_signals
from replaydbg.tui.apps.recording_side import RecordingSide
from replaydbg.tui.apps.themes import use_theme
from replaydbg.tui.apps.typed_app import TypedApp
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.dialogs.help_dialog import HelpDialog
from replaydbg.tui.dialogs.input_line import AskLine
from replaydbg.tui.dialogs.status_line import StatusLine
from replaydbg.tui.keys import ACTS, keymap, panel_keymap, textual_keys
from replaydbg.tui.panels.heap_panel import SCOPES, heap_row
from replaydbg.tui.panels.source_panel import SourcePanel
from replaydbg.tui.ui_messages import CannotOpen, Progressed
from replaydbg.tui.view_model import HeapAnswer, HeapRow, Reply, ValueRow
from replaydbg.tui.widgets.glyphs import ASCII, UNICODE
from replaydbg.tui.widgets.rows import plain

if TYPE_CHECKING:
    from replaydbg.heap.retention.holding import Holding
    from replaydbg.tui.worker.run_differences import FirstDifference

_MOVES = tuple(each for each in ACTS if each.action.startswith("order(") or each.id in ("failure", "seek"))

_OWN = {"bisect": "apart", "heap-diff": "diff", "help": "help", "quit": "quit", "cancel": "cancel"}
"""The effects of other actions' keys in this view."""

HELP = """\
Two recordings side by side. Values that differ are marked with !.

The keys that move are the same as with one recording; they move both. On the timeline, left and right move only
the one with the focus.

  tab  next panel
  =  move both, or only the one with the focus
  enter  expand a value
  {bisect}  first differences in control flow, inputs and values; enter goes there in both
  {heap-diff}  heap differences at the two positions; enter goes to the last write in both
  {help}  this help
  {quit}  quit"""


def is_other(one: ValueRow, two: ValueRow) -> bool:
    """Whether two rows show different values: equal ones have other addresses in another run."""
    # Imported here: the first frame is painted before the debugger is loaded.
    from replaydbg.debugger.session_results import are_other_values

    if not one.digest or not two.digest:
        return one.text != two.text
    return are_other_values((one.text, one.digest), (two.text, two.digest))


class PairApp(TypedApp):
    """The view of two recordings; its result is the exit code."""

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "replaydbg"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("equals_sign", "together", "Move both, or one", show=False),
        Binding("ctrl+c", "quit", "Leave", show=False, priority=True),
    ]

    def __init__(
        self,
        paths: tuple[Path, Path],
        *,
        memory: int = 0,
        is_ascii: bool = False,
        theme: str = "dark",
        keys: Mapping[str, str] | None = None,
    ) -> None:
        """Open both recordings, each at its failure."""
        super().__init__()
        self.keys = keymap() if keys is None else keys
        for each in [each for each in _MOVES if self.keys[each.id]]:
            self.bind(textual_keys(self.keys[each.id]), each.action, description=each.title, show=False)
        for act, action in _OWN.items():
            if self.keys[act]:
                self.bind(textual_keys(self.keys[act]), action, show=False)
        use_theme(self, theme)
        glyphs = ASCII if is_ascii else UNICODE
        self.sides = tuple(
            RecordingSide(path, f"side-{at}", glyphs=glyphs, memory=memory) for at, path in enumerate(paths, 1)
        )
        self.is_together = True
        self.failure_message = ""

    def compose(self) -> ComposeResult:
        """Make both sides."""
        with Horizontal(id="pair"):
            yield from self.sides
        yield AskLine()
        hint = "tab  the other   =  together   {bisect}  first differences   {heap-diff}  heap differences"
        hint = f"{hint}   {{help}}  help   {{quit}}  quit".format_map(self.keys)
        yield StatusLine(self.keys, hint)

    def on_mount(self) -> None:
        """Focus the first one."""
        self.screen.set_class(self.sides[0].glyphs is ASCII, "-ascii")
        self.set_keymap(panel_keymap(self.keys))
        self.sides[0].query_one(SourcePanel).focus()
        end_on_signals(self, [each.owner for each in self.sides])

    def on_unmount(self) -> None:
        """Let both threads end their processes."""
        for each in self.sides:
            each.owner.close()

    @property
    def is_waiting(self) -> bool:
        """Whether one of them has a request that is not answered yet."""
        return any(each.is_waiting for each in self.sides)

    def on_recording_side_came(self, message: RecordingSide.Came) -> None:
        """Mark the differences in both."""
        if not self.query(StatusLine):
            return
        one, two = ({each.expression: each for each in side.scene.values} if side.scene else {} for side in self.sides)
        places = [side.scene.at for side in self.sides if side.scene is not None]
        is_same_place = (
            len(places) == 2
            and all(each is not None for each in places)
            and len({(each.function) for each in places if each is not None}) == 1
        )
        known = (
            [name for name in one if name and name in two and is_other(one[name], two[name])] if is_same_place else []
        )
        self.sides[0].draw({name: f"other: {two[name].text}" for name in known})
        self.sides[1].draw({name: f"other: {one[name].text}" for name in known})
        errors = [f"{side.path.name}: {side.error}" for side in self.sides if side.error]
        self.query_one(StatusLine).notice("   ".join(errors), is_error=bool(errors))

    def on_progressed(self, message: Progressed) -> None:
        """Show the progress of a long operation."""
        if self.query(StatusLine):
            self.query_one(StatusLine).progress(message.what, message.done, message.seconds)

    def on_cannot_open(self, message: CannotOpen) -> None:
        """Quit, and report why."""
        self.failure_message = message.error
        self.exit(message.exit_code)

    # ---- actions ----

    def action_order(self, line: str) -> None:
        """Execute a command on both, or on the one with the focus."""
        for side in self.sides:
            if self.is_together or side.has_focus_within:
                side.order(line)

    def action_failure(self) -> None:
        """Go to the failure of the program."""
        for side in self.sides:
            if self.is_together or side.has_focus_within:
                side.to_failure()

    def action_ask_seek(self) -> None:
        """Ask for the moment to go to."""
        # The input line takes the focus, so determine the target now.
        wanted = [each for each in self.sides if self.is_together or each.has_focus_within]

        def seek(text: str) -> None:
            for side in wanted:
                side.order(f"seek {text}")

        self.query_one(AskLine).ask("go to (71%, 120:35, @exc, @out:3, @t+1.2s, @mark)", seek)

    def action_focus_back(self) -> None:
        """Restore the focus to a panel after the input line."""
        if self.screen.focused is None:
            self.screen.set_focus(self.sides[0].query_one(SourcePanel))

    def take_pasted(self, text: str) -> None:
        """Show a notice that pasted text is ignored here."""
        self.query_one(StatusLine).notice("Paste works only in an input field.", is_error=True)

    def action_together(self) -> None:
        """Toggle between moving both and moving only the one with the focus."""
        self.is_together = not self.is_together
        text = "Keys move both." if self.is_together else "Keys move the one with the focus."
        self.query_one(StatusLine).notice(text)

    def action_cancel(self) -> None:
        """Cancel the running operation."""
        for each in self.sides:
            each.owner.cancel()

    def action_help(self) -> None:
        """Show the keys."""
        moves = "\n".join(f"  {self.keys[each.id] or '(none)'}  {each.title}" for each in _MOVES)
        self.push_screen(HelpDialog(f"{HELP.format_map(self.keys)}\n{moves}"))

    def action_apart(self) -> None:
        """Find the first differences, and offer to go there."""
        self.query_one(StatusLine).notice("comparing the two runs ...")
        one, two = self.sides
        self.run_worker(partial(_compare, one.path, two.path, self._found), thread=True)

    def action_diff(self) -> None:
        """Compare the heaps of both at their present positions."""
        held: dict[int, object] = {}
        self.query_one(StatusLine).notice("comparing the heaps ...")

        def take(at: int, reply: Reply) -> None:
            held[at] = reply.answer
            if len(held) == 2:
                self._compare_heaps([cast("Holding", held[each]) for each in (0, 1)], SCOPES[0])

        for at, side in enumerate(self.sides):
            side.error = ""
            side.ask(lambda host: host.heap_here(), then=partial(take, at))

    def _compare_heaps(self, held: list[Holding], scope: str) -> None:
        names = (self.sides[0].path.stem, self.sides[1].path.stem)

        def found(answer: HeapAnswer | str) -> None:
            self.call_from_thread(self._show_heaps, held, answer)

        self.run_worker(partial(_compare_heaps, held, names, scope, found), thread=True)

    def _show_heaps(self, held: list[Holding], answer: HeapAnswer | str) -> None:
        self.query_one(StatusLine).notice("" if isinstance(answer, HeapAnswer) else answer, is_error=True)
        if not isinstance(answer, HeapAnswer):
            return
        rows = [heap_row(each) for each in answer.rows]
        rows += [plain(f"scope: {each}", "accent", each) for each in SCOPES if each != answer.scope]

        def chosen(key: object) -> None:
            if isinstance(key, HeapRow):
                path = key.path
                for side in self.sides:
                    side.error = ""
                    side.ask(lambda host: host.go_to_write(path))
            elif isinstance(key, str):
                self._compare_heaps(held, key)

        hint = "Enter goes to its last write in both"
        self.show_late(Dialog(answer.title, rows, hint=hint, is_late=True), chosen)

    def _found(self, found: Sequence[FirstDifference] | str) -> None:
        self.call_from_thread(self._show_differences, found)

    def _show_differences(self, found: Sequence[FirstDifference] | str) -> None:
        self.query_one(StatusLine).notice(found if isinstance(found, str) else "", is_error=True)
        if isinstance(found, str):
            return
        rows = []
        for each in found:
            rows.append(plain(each.name, "bold", each.moments))
            rows += [plain(f"  {line}") for line in each.lines]

        def chosen(key: object) -> None:
            if isinstance(key, tuple):
                for side, moment in zip(self.sides, key, strict=True):
                    if moment:
                        side.order(f"seek {moment}")

        self.show_late(Dialog("First differences", rows, hint="Enter goes there in both", is_late=True), chosen)


def _compare(one: Path, two: Path, found: Callable[[Sequence[FirstDifference] | str], None]) -> None:
    # Imported here: the first frame is painted before the debugger is loaded.
    from replaydbg.tui.worker.run_differences import differences

    try:
        found(differences(one, two))
    except (ReplaydbgError, OSError) as error:
        found(str(error))


def _compare_heaps(
    held: list[Holding], names: tuple[str, str], scope: str, found: Callable[[HeapAnswer | str], None]
) -> None:
    # Imported here, as above.
    from replaydbg.tui.worker.heap_queries import between

    try:
        found(between(held[0], held[1], names, scope))
    except ReplaydbgError as error:
        found(str(error))
