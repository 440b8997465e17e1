"""The exceptions that replaydbg raises for its users to read; callers import them from here.

ReplaydbgError
|-- UsageError          the command line or a setting is invalid
|-- CannotRecord        a recording cannot be created at the given place
|-- CannotJoin          a group of processes is not being recorded any more
|-- CannotRedact        a recording cannot be copied without its secrets
|-- NoFutures           a recorded program cannot go on from a moment in many ways
|-- CannotResume        a recorded program cannot go live, or not without --force
|-- UnfinishedGroup     the directory of a group has no list of its processes
|-- NoSuchRecording     no recording has that name or path
|-- NotARecording       the file is something else
|-- NewerFormat         the recording was made by a newer replaydbg
|-- Corrupt             a part of the recording that is needed is damaged
|-- SignatureRefused    the signature beside a recording does not match, or cannot be verified
|-- SecretsMasked       a replay needs secrets for which there is no key
|-- WrongPython         the recording needs another Python for its replay
|-- CannotStart         a recording has interpreter options that `record` never writes
|-- UnsupportedPython   the native core does not support this interpreter
|-- NotBuilt            the native core is missing
|-- NoFence             the kernel cannot isolate a replay
|-- EngineLost          a process of the debugger's engine has ended
|-- ForgedMessage       a process of a replay sent an invalid message
|-- AskFailed           an expression cannot be evaluated at a moment
|-- Cancelled           a long operation was cancelled
|-- NotComparable       two recordings have nothing that could be compared
|-- CannotHunt          a command does not fail in one run and pass in another
|-- Inconclusive        a bisection has no answer
|-- SchedulerLost       the scheduler of a cluster does not answer
|-- NoSuchMoment        a recording has no such moment
|-- BadDeclaration      agents or channels of `replaydbg.distributed` are declared wrongly
|-- ChannelMisuse       an agent uses a channel in a way that the channel does not have
|-- SnapshotIncomplete  a global snapshot was not complete in time
`-- Divergence          a replay did something else than was recorded

Each carries its evidence as fields and builds its own message, so that every front end shows the same facts.
This module imports nothing: it is loaded by the recorder, whose start every recorded program pays.
"""

from __future__ import annotations


def quoted(word: str) -> str:
    """Return `word` quoted for a shell's command line (shlex would import re for it)."""
    is_plain = word and all(char.isalnum() or char in "-_./+:@%" for char in word)
    return word if is_plain else "'" + word.replace("'", "'\\''") + "'"


def clause(text: str) -> str:
    """Return `text`, such as an exception's, for the end of a sentence, which adds the full stop.

    An exception without a text (`MemoryError: `) loses its colon.
    """
    shown = text.rstrip().removesuffix(":")
    return shown if shown.endswith("..") else shown.removesuffix(".")


def _with_one_stop(message: str) -> str:
    """Return a message whose last words may be the text of an exception, with one full stop at its end."""
    return clause(message[:-1]) + "." if message.endswith("..") or message.endswith(": .") else message


class ReplaydbgError(Exception):
    """Base of all errors that replaydbg reports to its user; a message has the cause first, then the remedy."""

    slug: str = "error"
    """The anchor in docs/reference/messages.md that explains the message."""

    exit_code: int = 1
    """The exit code of a command that fails with it."""

    fields: tuple[str, ...] = ()
    """The names of the attributes that hold the evidence."""

    def __init__(self, message: str) -> None:
        super().__init__(_with_one_stop(message))

    def as_dict(self) -> dict[str, object]:
        """Return the evidence with slug and message, ready for `--json`."""
        facts: dict[str, object] = {"slug": self.slug, "message": str(self)}
        facts.update((name, getattr(self, name)) for name in self.fields)
        return facts


class UsageError(ReplaydbgError):
    """The command line or a setting is invalid."""

    slug = "usage"
    exit_code = 2
    fields = ("problem",)

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = str(self)


class CannotRecord(ReplaydbgError):
    """A recording cannot be created at the given place; the program was not started."""

    slug = "cannot-record"
    exit_code = 2
    fields = ("path", "reason")

    def __init__(self, path: str, reason: str, *, signal: int = 0) -> None:
        self.path = path
        self.reason = reason
        self.signal = signal
        """The number of the signal that ended the interpreter before it began; 0: none did."""
        super().__init__(f"Cannot record to {path!r}: {clause(reason)}. The program was not started.")


class CannotJoin(ReplaydbgError):
    """A program cannot join a group of processes."""

    slug = "cannot-join"
    exit_code = 2
    fields = ("group", "reason")

    def __init__(self, group: str, reason: str) -> None:
        self.group = group
        self.reason = reason
        super().__init__(f"Cannot join {group!r}: {clause(reason)}. The program was not started.")


class CannotResume(ReplaydbgError):
    """A recorded program cannot go live; nothing of it ran live."""

    slug = "cannot-resume"
    exit_code = 2
    fields = ("recording", "reason", "details")

    def __init__(self, recording: str, reason: str, details: tuple[str, ...] = ()) -> None:
        self.recording = recording
        self.reason = reason
        self.details = details
        """Sentences without a full stop, each about a file or another resource."""
        lines = [f"Cannot resume {recording!r}: {clause(reason)}.", *(f"  {each}" for each in details)]
        super().__init__("\n".join(lines))


class NoFutures(ReplaydbgError):
    """A recorded program cannot go on from a moment in many ways; nothing was kept."""

    slug = "no-futures"
    exit_code = 2
    fields = ("recording", "reason")

    def __init__(self, recording: str, reason: str) -> None:
        self.recording = recording
        self.reason = reason
        super().__init__(f"Cannot make futures of {recording!r}: {clause(reason)}.")


class CannotRedact(ReplaydbgError):
    """A recording cannot be copied without its secrets; there is no copy."""

    slug = "cannot-redact"
    exit_code = 2
    fields = ("recording", "reason", "where")

    def __init__(self, recording: str, reason: str, where: str = "") -> None:
        self.recording = recording
        self.reason = reason
        self.where = where
        """The line of the program at which its run depends on a secret; empty if it is another reason."""
        at = f" ({where})" if where else ""
        super().__init__(f"Cannot redact {recording!r}: {clause(reason)}{at}.")


class UnfinishedGroup(ReplaydbgError):
    """The directory of a group of processes has no list of them."""

    slug = "unfinished-group"
    exit_code = 2
    fields = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} has no list of its processes (group.json), so it cannot be read: it is just being made, or "
            f"replaydbg was killed while it made it, or the file was removed. `replaydbg rm` removes it."
        )


class NoSuchRecording(ReplaydbgError):
    """No recording has that name or path."""

    slug = "no-such-recording"
    exit_code = 2
    fields = ("name", "store")

    def __init__(self, name: str, store: str = "", hint: str = "") -> None:
        self.name = name
        self.store = store
        place = f" in {store}" if store else ""
        lists = f"replaydbg ls {store}" if "://" in store else "replaydbg ls"
        super().__init__(f"No recording {name!r}{place}{hint}. `{lists}` lists the recordings.")


class NotARecording(ReplaydbgError):
    """The file or directory is not a recording."""

    slug = "not-a-recording"
    fields = ("path", "reason")

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path!r} is not a recording: {clause(reason)}.")


class NewerFormat(ReplaydbgError):
    """The recording was made by a newer replaydbg, in a format that this version does not support."""

    slug = "newer-format"
    fields = ("path", "found", "known")

    def __init__(self, path: str, found: int, known: int) -> None:
        self.path = path
        self.found = found
        self.known = known
        super().__init__(
            f"{path!r} has format {found} and this replaydbg reads formats up to {known}: update replaydbg to open it."
        )


class Corrupt(ReplaydbgError):
    """A part of the recording that the operation needs is damaged."""

    slug = "corrupt"
    fields = ("path", "reason")

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path!r} is damaged: {clause(reason)}.")


class SignatureRefused(ReplaydbgError):
    """The signature beside a recording does not match it, or cannot be verified; nothing of the recording was used."""

    slug = "signature-refused"
    fields = ("path", "reason")

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"The signature of {path!r} {clause(reason)}. Nothing of the recording was used.")


class BlocksMissing(ReplaydbgError):
    """The recording shares blocks with others, and the directory of the blocks is missing."""

    slug = "blocks-missing"
    fields = ("path", "directory")

    def __init__(self, path: str, directory: str) -> None:
        self.path = path
        self.directory = directory
        super().__init__(
            f"{path!r} shares blocks with other recordings, but their directory {directory!r} is not beside it: copy "
            "that directory too, or use `replaydbg pack` where both exist to make one file."
        )


class SecretsMasked(ReplaydbgError):
    """A replay needs secrets of the recording, for which this user has no key."""

    slug = "secrets-masked"
    fields = ("path", "recipients")

    def __init__(self, path: str, recipients: tuple[str, ...]) -> None:
        self.path = path
        self.recipients = recipients
        if not recipients:
            super().__init__(
                f"{path!r} cannot be replayed: its secrets are masked for good, because no key could be used when it "
                "was sealed (see `replaydbg key`)."
            )
            return
        super().__init__(
            f"{path!r} cannot be replayed: secrets in its environment or code are masked, and you have no key for "
            f"them. They are encrypted for {' and '.join(recipients)}."
        )


class WrongPython(ReplaydbgError):
    """The recording needs another Python for its replay than the one at hand."""

    slug = "wrong-python"
    exit_code = 2
    fields = ("path", "recorded", "found", "executable")

    def __init__(self, path: str, recorded: str, found: str, executable: str = "", *, has_core: bool = False) -> None:
        self.path = path
        self.recorded = recorded
        self.found = found
        self.executable = executable
        """An interpreter like the recorded one, for which this installation has no core; empty: there is none."""
        if executable:
            how = f"run `{executable} -m replaydbg` instead (if it has no replaydbg, install it there first)"
        elif has_core:
            how = f"set REPLAYDBG_PYTHON to the path of a Python {recorded}"
        else:
            how = f"install replaydbg in a Python {recorded}, and run that one's `python -m replaydbg`"
        super().__init__(
            f"{path!r} was recorded with Python {recorded} and cannot be replayed with {found}: {how}. "
            "Reading it (info, events, verify) works with any supported Python."
        )


class CannotStart(ReplaydbgError):
    """A recording has interpreter options or variables that `record` never writes; its program was not started."""

    slug = "cannot-start"
    fields = ("path", "reason")

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path!r} cannot be replayed: {clause(reason)}. The program was not started.")


class UnsupportedPython(ReplaydbgError):
    """The native core cannot run in this interpreter: another implementation, version, or kind of build."""

    slug = "unsupported-python"
    fields = ("executable", "reason", "wanted")

    def __init__(self, executable: str, reason: str, wanted: str) -> None:
        self.executable = executable
        self.reason = reason
        self.wanted = wanted
        super().__init__(
            f"Cannot record or replay with {executable!r}: {clause(reason)}. Install replaydbg for {wanted}. "
            "Reading a recording (info, events, verify) works with any Python from 3.11 on."
        )


class NotBuilt(ReplaydbgError):
    """The native core, which recording and replaying need, is missing or cannot be loaded."""

    slug = "not-built"
    fields = ("reason",)

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        why = f" ({reason})" if reason else ""
        super().__init__(
            f"The native core of replaydbg is not built{why}: install a C compiler (gcc or clang) and the Python "
            "headers (python3-dev or python3-devel), then install replaydbg again."
        )


class Divergence(ReplaydbgError):
    """A replayed program did something else than when it was recorded; the replay has ended."""

    slug = "divergence"
    exit_code = 4
    fields = (
        "kind",
        "recording",
        "thread",
        "event",
        "recorded",
        "observed",
        "where",
        "stack",
        "last_agreeing",
        "cause",
    )

    LIKELY_CAUSE = (
        "The program made a different call from the recorded one. "
        "Common cause: an input that replaydbg does not record."
    )

    def __init__(
        self,
        *,
        recording: str,
        event: int,
        recorded: str,
        observed: str,
        thread: str = "main",
        where: str = "",
        stack: tuple[str, ...] = (),
        last_agreeing: str = "",
        cause: str = "",
        kind: str = "",
    ) -> None:
        self.kind = kind
        if kind:
            self.slug = f"divergence-{kind}"
        self.recording = recording
        self.thread = thread
        self.event = event
        self.recorded = recorded
        self.observed = observed
        self.where = where
        self.stack = stack
        self.last_agreeing = last_agreeing
        self.cause = cause or self.LIKELY_CAUSE
        super().__init__(self._message())

    def _message(self) -> str:
        lines = [
            f"Replay diverged in thread {self.thread}, event {self.event}.",
            f"  recorded: {self.recorded}",
            f"  observed: {self.observed}",
        ]
        if self.where:
            lines.append(f"  at: {self.where}")
        if self.last_agreeing:
            lines.append(f"  last agreeing: {self.last_agreeing}")
        if self.stack:
            lines.append("  stack, innermost last:")
            lines.extend(f"    {line}" for line in self.stack)
        lines.append(self.cause)
        lines.append(
            f"See messages#{self.slug}. Replay to this point: "
            f"replaydbg replay {quoted(self.recording)} --to {self.event}"
        )
        return "\n".join(lines)

    def as_reason(self) -> str:
        """Return a sentence that explains why edited code could not be replayed."""
        at = f" ({self.where})" if self.where else ""
        return f"{self.cause.split('. ')[0].rstrip('.')}: {self.observed}{at}"


class NoFence(ReplaydbgError):
    """The kernel cannot isolate a replay; the program was not started."""

    slug = "no-fence"
    exit_code = 7
    fields = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"This system cannot isolate a replay: the kernel refuses the system call filter ({reason}). Nothing was "
            "replayed. Use --no-fence to replay without the filter, only for recordings that you made yourself."
        )


class EngineLost(ReplaydbgError):
    """A process of the debugger's engine ended while it was in use."""

    slug = "engine-lost"
    exit_code = 3
    fields = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"A process in which the debugger replays the recording was lost: {clause(reason)}.")


class ForgedMessage(ReplaydbgError):
    """A process that replays a recording sent an invalid message; the session has ended."""

    slug = "forged-message"
    exit_code = 3
    fields = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"The process that replays the recording sent an invalid message: {clause(reason)}. "
            "The recording is hostile or damaged; all processes of the replay were stopped."
        )


class AskFailed(ReplaydbgError):
    """An expression or question cannot be evaluated at this moment of the program."""

    slug = "ask-failed"
    fields = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Cannot evaluate this here: {clause(reason)}.")


class Cancelled(ReplaydbgError):
    """A long operation was cancelled on request."""

    slug = "cancelled"
    exit_code = 3

    def __init__(self) -> None:
        super().__init__("Cancelled.")


class NotComparable(ReplaydbgError):
    """Two recordings cannot be compared, or the comparison would mean nothing."""

    slug = "not-comparable"
    exit_code = 3
    fields = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"{reason} Only two whole recordings of one program can be compared; `bisect recordings` needs one that "
            "passed and one that failed."
        )


class CannotHunt(ReplaydbgError):
    """A command cannot be started, never fails, or always does: there are no two runs to compare."""

    slug = "cannot-hunt"
    exit_code = 3
    fields = ("reason", "runs", "failures")

    def __init__(self, reason: str, runs: int, failures: int) -> None:
        self.reason = reason
        self.runs = runs
        self.failures = failures
        super().__init__(reason)


class Inconclusive(ReplaydbgError):
    """A bisection has no answer: the good or the bad end is not as given, or every test was inconclusive."""

    slug = "inconclusive"
    exit_code = 3
    fields = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class SchedulerLost(ReplaydbgError):
    """The scheduler of a cluster does not answer, or no longer."""

    slug = "scheduler-lost"
    exit_code = 2
    fields = ("address", "reason")

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"The scheduler {address!r} {clause(reason)}.")


class NoSuchMoment(ReplaydbgError):
    """The requested moment does not exist in the recording, or its name cannot be parsed."""

    slug = "no-such-moment"
    exit_code = 2
    fields = ("moment", "reason")

    def __init__(self, moment: str, reason: str) -> None:
        self.moment = moment
        self.reason = reason
        super().__init__(f"No such moment {moment!r}: {clause(reason)}.")


class BadDeclaration(ReplaydbgError):
    """Agents or channels of `replaydbg.distributed` cannot be declared like this."""

    slug = "bad-declaration"
    exit_code = 2
    fields = ("problem",)

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"Cannot declare this: {clause(problem)}.")


class ChannelMisuse(ReplaydbgError):
    """An agent uses a channel from the wrong side, or in a way that the channel does not have."""

    slug = "channel-misuse"
    exit_code = 2
    fields = ("problem",)

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"Cannot use the channel like this: {clause(problem)}.")


class SnapshotIncomplete(ReplaydbgError):
    """A global snapshot of agents was not complete when the timeout was over; `state` has what is recorded so far."""

    slug = "snapshot-incomplete"
    exit_code = 3
    fields = ("snapshot", "waiting", "missing")

    def __init__(self, snapshot: str, waiting: dict[str, str], missing: tuple[str, ...], state: object = None) -> None:
        self.snapshot = snapshot
        self.waiting = waiting
        self.missing = missing
        self.state = state
        states = f"the state of {', '.join(missing)} is not recorded" if missing else ""
        silent = [channel for channel, reason in waiting.items() if not reason]
        markers = f"no marker has arrived on {', '.join(silent)}" if silent else ""
        others = [f"channel {channel}: {reason}" for channel, reason in waiting.items() if reason]
        reasons = "; ".join(filter(None, (states, markers, *others)))
        super().__init__(f"Snapshot {snapshot} is not complete: {reasons}.")


class RemoteFailed(ReplaydbgError):
    """A remote store cannot be reached, refuses something, or has not what it should have."""

    slug = "remote-failed"
    exit_code = 2
    fields = ("store", "reason")

    def __init__(self, store: str, reason: str) -> None:
        self.store = store
        self.reason = reason
        super().__init__(f"{store}: {clause(reason)}.")
