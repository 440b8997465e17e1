"""Sockets of ZeroMQ between threads: messages in parts, errors, polling, options, copies that libzmq frees."""

import threading

import zmq

context = zmq.Context()
server = context.socket(zmq.ROUTER)
port = server.bind_to_random_port("tcp://127.0.0.1")
server.setsockopt(zmq.LINGER, 0)


def serve() -> None:
    for _ in range(3):
        identity, *parts = server.recv_multipart()
        server.send_multipart([identity, *(part[::-1] for part in parts)])


thread = threading.Thread(target=serve)
thread.start()
client = context.socket(zmq.DEALER)
client.setsockopt(zmq.IDENTITY, b"client")
client.connect(f"tcp://127.0.0.1:{port}")
try:
    client.recv(zmq.NOBLOCK)
except zmq.Again as error:
    print("nothing yet", error.errno == zmq.EAGAIN)
client.send_multipart([b"abc", b"def"])
print(client.recv_multipart())
# It is not copied: when it has been sent, libzmq frees it in its own thread, and a thread of Python's is told.
tracker = client.send(b"x" * 200_000, copy=False, track=True)
print(len(client.recv()))
tracker.wait(10)
print(tracker.done)
client.send(b"last")
poller = zmq.Poller()
poller.register(client, zmq.POLLIN)
print([(socket is client, event) for socket, event in poller.poll(10_000)])
frame = client.recv(copy=False)
print(bytes(frame), frame.more, frame.get("Socket-Type"), frame.get(zmq.MORE))
thread.join()
print(client.poll(1), client.getsockopt(zmq.LAST_ENDPOINT) == f"tcp://127.0.0.1:{port}".encode())
one, other = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
one.bind("inproc://pair")
other.connect("inproc://pair")
one.send_string("inside")
print(other.recv_string(), port)
for socket in (one, other, client, server):
    socket.close()
context.term()
print("closed", context.closed)
