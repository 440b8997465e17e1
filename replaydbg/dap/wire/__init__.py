"""Messages of the protocol: bytes, requests and their order. Nothing here knows the debugger."""
