"""kernel_peer.py PORT: an endpoint like lwip_peer.cc (which describes the protocol) with this system's kernel TCP."""

import hashlib
import json
import socket
import sys
import threading
import time

PATIENCE = 30  # seconds without a byte after which the receiver gives up


def stream(seed, size):
    blocks = (hashlib.sha512(f"{seed} {i}".encode()).digest() for i in range(-(-size // 64)))
    return b"".join(blocks)[:size]


def report(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def serve(connection):
    seed = ""
    try:
        with connection:
            question = b""
            while not question.endswith(b"\n"):
                part = connection.recv(1000)
                if not part:
                    return
                question += part
            seed, size = question.decode().split()
            connection.sendall(stream(seed, int(size)))
            connection.recv(1)
    except TimeoutError:
        pass  # the receiver reports it
    except ConnectionError:
        report(serve=seed, end="reset")


def accept_all(listener):
    while True:
        connection, _ = listener.accept()
        connection.settimeout(PATIENCE)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


def fetch(address, port, seed, size):
    expected = stream(seed, size)
    opened = begin = last = time.monotonic()
    got, gap, end = bytearray(), 0.0, "complete"
    try:
        with socket.create_connection((address, port), PATIENCE) as connection:
            begin = last = time.monotonic()
            connection.sendall(f"{seed} {size}\n".encode())
            while len(got) < size:
                part = connection.recv(1 << 18)
                now = time.monotonic()
                gap, last = max(gap, now - last), now
                if not part:
                    end = "closed"
                    break
                got += part
    except ConnectionError:
        end = "reset"
    except OSError:
        end = "silent"
    report(seed=seed, bytes=len(got), seconds=last - begin, connect=begin - opened,
           gap=max(gap, time.monotonic() - last),
           ok=got == expected, end=end)


def main():
    listener = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=64)
    threading.Thread(target=accept_all, args=(listener,), daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        address, port, seed, size = line.split()
        threading.Thread(target=fetch, args=(address, int(port), seed, int(size)), daemon=True).start()


if __name__ == "__main__":
    main()
