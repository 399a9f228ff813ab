"""A server of bytes over persistent connections: python3 -m lab.requests ADDRESS PORT.

A client sends the number of bytes it wants (4 bytes, network order), any number of times per connection; see ask().
"""

import socket
import struct
import sys
import threading
import time

QUESTION = struct.Struct("!I")
MOST = 1 << 20  # bytes of one answer
PATIENCE = 10  # seconds without a byte


def serve(connection):
    content = bytes(MOST)
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while question := connection.recv(QUESTION.size, socket.MSG_WAITALL):
            connection.sendall(memoryview(content)[:QUESTION.unpack(question)[0]])


def connect(address, port):
    """A connection for ask()."""
    handle = socket.create_connection((address, port), timeout=PATIENCE)
    handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return handle


def ask(handle, size, room):
    """Seconds from the request until the last of `size` bytes. `room`: a bytearray of at least `size` bytes."""
    view = memoryview(room)
    began, got = time.monotonic(), 0
    handle.sendall(QUESTION.pack(size))
    while got < size:
        part = handle.recv_into(view[:size - got])
        if part == 0:
            raise ConnectionError(f"the server closed after {got} of {size} bytes")
        got += part
    return time.monotonic() - began


def main():
    with socket.create_server((sys.argv[1], int(sys.argv[2]))) as listener:
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
