"""python3 -m second.sink ADDRESS PORT: counts the datagrams that come, and prints their number at SIGTERM."""

import signal
import socket as sockets
import sys


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    socket, count, buffer = sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM), 0, bytearray(65536)
    socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4 << 20)
    socket.bind((sys.argv[1], int(sys.argv[2])))
    print("listens", flush=True)
    try:
        while True:
            socket.recv_into(buffer)
            count += 1
    finally:
        print(count, flush=True)


if __name__ == "__main__":
    main()
