"""Decide what is done with each call in flight, from what was found out and what the user wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from replaydbg.errors import CannotResume
from replaydbg.events.show import show_crossing
from replaydbg.resume.conversation import CallInFlight, Settled
from replaydbg.resume.findings import CallVerdict, Finding, repeat
from replaydbg.resume.hooks import Hooks

ASK, REPEAT, SKIP = "ask", "repeat", "skip"
"""The ways to deal with a call of which it is not known whether it was made."""
POLICIES = (ASK, REPEAT, SKIP)

Ask = Callable[[Finding], str]
"""Returns REPEAT or SKIP, or anything else to end the command."""

_NOTHING = frozenset(
    {"posix.kill", "posix.killpg", "posix.eventfd_write", "syslog.syslog", "_signal.pidfd_send_signal"}
)
"""Calls that return None."""


def call_text(call: CallInFlight) -> str:
    """Return a call in flight with its arguments, for people."""
    shown = f"{call.data_length:,} bytes"
    if call.call.split(".")[-1] in ("write", "send", "sendall", "writev") and call.data_length:
        return f"{call.call}({f'<descriptor {call.fd}>, ' if call.fd >= 0 else ''}{shown})"
    arguments = tuple(each for each in call.args if not isinstance(each, dict))
    return show_crossing(call.call, arguments)


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
            finding = repeat(each.call, f"{each.reason}; made now (--force)")
        elif finding.verdict is CallVerdict.UNKNOWN:
            finding = _of_unknown(each, name, policy, ask)
        decided.append(Settled(finding.call.thread, finding.verdict is CallVerdict.DONE, finding.value))
        final.append(finding)
    return decided, final


def _of_unknown(finding: Finding, name: str, policy: str, ask: Ask | None) -> Finding:
    call = finding.call
    if policy == ASK and ask is None:
        reason = f"{call_text(call)} was in flight, and {finding.reason}: choose --in-flight=repeat or --in-flight=skip"
        raise CannotResume(name, reason)
    choice = ask(finding) if policy == ASK and ask is not None else policy
    if choice == REPEAT:
        return repeat(call, f"{finding.reason}; made now")
    if choice != SKIP:
        raise CannotResume(name, f"{call_text(call)} was in flight, and was not decided")
    if not call.data_length and call.call not in _NOTHING:
        raise CannotResume(name, f"{call_text(call)} cannot be skipped: its result is not known")
    value = None if call.call in _NOTHING or call.call == "_socket.socket.sendall" else call.data_length
    return Finding(call, CallVerdict.DONE, f"{finding.reason}; skipped", value)
