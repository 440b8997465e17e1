"""A pause is meant for a move that has not reported its stop: after that, it gets a stop of its own."""

from replaydbg.dap.wire.editor_requests import EditorRequest, RequestQueue, request_in


def a_move() -> EditorRequest:
    request = request_in({"type": "request", "seq": 1, "command": "continue", "arguments": {"threadId": 1}})
    assert isinstance(request, EditorRequest)
    return request


def moves(request: EditorRequest) -> bool:
    return request.command == "continue"


def test_a_move_that_has_reported_its_stop_moves_no_more() -> None:
    queue = RequestQueue()
    queue.put(a_move())
    assert queue.has(moves)
    assert queue.take() is not None and queue.has(moves)

    queue.settle()

    assert not queue.has(moves) and queue.running is not None
    queue.put(a_move())
    assert queue.has(moves)
    queue.take()
    assert queue.has(moves)
