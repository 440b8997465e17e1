from _typeshed import ReadableBuffer

class Walker:
    def walk(self, data: ReadableBuffer, /) -> tuple[list[tuple[int, int, int, int, int, int, int]], int, int]: ...
