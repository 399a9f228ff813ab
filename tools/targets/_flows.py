"""Many short TCP flows between the hosts of a lab, one connection each, by plain sockets of unmodified kernels.

The sender writes into the first bytes when it began to connect (if it did) and when it began to send on the open
connection. The receiver records the time of the last byte. Both use the clock of the same machine.
"""

import concurrent.futures
import dataclasses
import socket
import struct
import time

from lab import Lab

_HEADER = struct.Struct("!dd")
_LISTEN_QUEUE = 512
TIMEOUT = 10  # seconds without a byte: the flow is stuck


@dataclasses.dataclass
class Completion:
    """Seconds until the receiver had all bytes: from connect(), and from the first write on the open connection."""

    from_connect: float
    from_send: float


def content(size):
    """The data behind the header of a flow."""
    return (bytes(i * 31 & 0xff for i in range(256)) * (size // 256 + 1))[:size - _HEADER.size]


class Flows:
    """Flows of `size` bytes, "down" to the lab's client or "up" to its server, `parallel` at a time."""

    def __init__(self, lab, direction, size, parallel=1, port=7000):
        self._lab = lab
        self._down = direction == "down"
        self._content = content(size)
        self._size = size
        self._parallel = parallel
        self._place = (Lab.server_addresses()[0], port)

    def run(self, count):
        """([Completion], number of flows that were reset, stuck or had wrong bytes)."""
        listener = self._lab.server.inside(self._listen)
        shares = [count // self._parallel + (i < count % self._parallel) for i in range(self._parallel)]
        with listener, concurrent.futures.ThreadPoolExecutor(2 * self._parallel) as pool:
            serving = [pool.submit(self._each, self._serve, listener, share) for share in shares]
            fetching = [pool.submit(self._each, self._fetch, None, share) for share in shares]
            concurrent.futures.wait(fetching)
            listener.shutdown(socket.SHUT_RDWR)  # for servers whose client never came
            receiving = fetching if self._down else serving
            results = [result for done in receiving for result in done.result()]
        good = [result for result in results if result]
        return good, count - len(good)

    def _listen(self):
        return socket.create_server(self._place, backlog=_LISTEN_QUEUE)

    @staticmethod
    def _each(function, argument, count):
        results = []
        for _ in range(count):
            try:
                results.append(function(argument))
            except OSError:  # reset, or stuck
                results.append(None)
        return results

    def _serve(self, listener):
        handle, _ = listener.accept()
        with handle:
            handle.settimeout(TIMEOUT)
            if not self._down:
                return self._receive(handle, None)
            handle.sendall(_HEADER.pack(0, time.monotonic()) + self._content)
            handle.recv(1)  # its close
            return None

    def _fetch(self, _):
        handle = self._lab.client.inside(socket.socket)
        with handle:
            handle.settimeout(TIMEOUT)
            began = time.monotonic()
            handle.connect(self._place)
            if self._down:
                return self._receive(handle, began)
            handle.sendall(_HEADER.pack(began, time.monotonic()) + self._content)
            handle.recv(1)
            return None

    def _receive(self, handle, began):
        data = bytearray()
        while len(data) < self._size:
            part = handle.recv(1 << 16)
            if not part:
                break
            data += part
        now = time.monotonic()
        if len(data) != self._size or data[_HEADER.size:] != self._content:
            return None
        connecting, sending = _HEADER.unpack_from(data)
        return Completion(now - (connecting if began is None else began), now - sending)
