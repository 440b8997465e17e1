"""Decide what is done with each call in flight, from what was found out and what the user wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from replaydbg.errors import CannotResume
from replaydbg.events.show import show_crossing
from replaydbg.events.values import Opaque, Value
from replaydbg.resume.conversation import CallInFlight, Settled
from replaydbg.resume.findings import CallVerdict, Finding, repeat, skipped
from replaydbg.resume.hooks import Hooks

ASK, REPEAT, SKIP = "ask", "repeat", "skip"
"""The ways to deal with a call of which it is not known whether it was made."""
POLICIES = (ASK, REPEAT, SKIP)

Ask = Callable[[Finding], str]
"""Returns REPEAT or SKIP, or anything else to end the command."""

_NOTHING = frozenset(
    {
        *("posix.kill", "posix.killpg", "posix.eventfd_write", "syslog.syslog", "_signal.pidfd_send_signal"),
        *("posix.mkdir", "posix.mkfifo", "posix.mknod", "posix.rmdir", "posix.unlink", "posix.remove"),
        *("posix.rename", "posix.replace", "posix.link", "posix.symlink", "posix.removexattr"),
        *("_socket.socket.sendall", "termios.tcsendbreak", "readline.append_history_file", "_posixshmem.shm_unlink"),
    }
)
"""Calls that return None."""

_MOST_SHOWN = 8
"""Arguments: the one that starts a process has more than twenty."""


def call_text(call: CallInFlight) -> str:
    """Return a call in flight with its arguments, for people."""
    shown = f"{call.data_length:,} bytes"
    if call.call.split(".")[-1] in ("write", "send", "sendall", "writev") and call.data_length:
        return f"{call.call}({f'<descriptor {call.fd}>, ' if call.fd >= 0 else ''}{shown})"
    keywords = {name: _shown(value) for name, value in call.keywords.items()}
    arguments = (*map(_shown, call.args[:_MOST_SHOWN]), *([keywords] if keywords else ()))
    text = show_crossing(call.call, arguments)
    return f"{text[:-1]}, ...)" if len(call.args) > _MOST_SHOWN else text


def _shown(value: Value) -> Value:
    """Return an argument as it is shown: of one that is no data there is the type."""
    return Opaque(str(value.get("type"))) if isinstance(value, dict) else value


def can_skip(call: CallInFlight) -> bool:
    """Whether it is known what a call returns, so that the program can go on without it."""
    return call.data_length > 0 or call.call in _NOTHING


def ask_hooks(findings: Iterable[Finding], hooks: Hooks) -> list[Finding]:
    """Return the findings, with those that a hook has an answer for replaced. Raises CannotResume if one stops it."""
    return [hooks.settle(each.call) or each for each in findings]


def settle(
    findings: Iterable[Finding], *, name: str, policy: str, force: bool, ask: Ask | None
) -> tuple[list[Settled], list[Finding]]:
    """Return the decisions, and the findings with what was decided.

    `name` is that of the recording; `ask` asks the user, None if there is nobody to ask. Raises CannotResume.
    """
    decided: list[Settled] = []
    final: list[Finding] = []
    for each in findings:
        finding = each
        if finding.verdict is CallVerdict.CHANGED:
            if not force:
                raise CannotResume(name, f"{call_text(each.call)} in flight: {each.reason}")
            finding = repeat(each.call, f"{each.reason}; will be made (--force)")
        elif finding.verdict is CallVerdict.UNKNOWN:
            finding = _of_unknown(each, name, policy, ask)
        decided.append(Settled(finding.call.thread, not finding.is_made, finding.value))
        final.append(finding)
    return decided, final


def _of_unknown(finding: Finding, name: str, policy: str, ask: Ask | None) -> Finding:
    call = finding.call
    was_in_flight = f"{call_text(call)} was in flight, and {finding.reason}"
    if policy == ASK and ask is None:
        how = "choose --in-flight=repeat or --in-flight=skip"
        if not can_skip(call):
            how = "choose --in-flight=repeat (it cannot be skipped, since its result is not known)"
        raise CannotResume(name, f"{was_in_flight}: {how}")
    choice = ask(finding) if policy == ASK and ask is not None else policy
    if choice == REPEAT:
        return repeat(call, f"{finding.reason}; will be made")
    if choice != SKIP:
        raise CannotResume(name, f"no choice was made for {call_text(call)}, which was in flight")
    if not can_skip(call):
        reason = f"{was_in_flight}. It cannot be skipped, since its result is not known: choose --in-flight=repeat"
        raise CannotResume(name, reason)
    return skipped(call, finding.reason, None if call.call in _NOTHING else call.data_length)
