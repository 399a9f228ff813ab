"""Headless Chromium in a network namespace, spoken to by the DevTools protocol."""

import asyncio
import base64
import contextlib
import json
import socket
import tempfile
import threading
import urllib.request

import websockets

PORT = 9222
_WORDS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
          "--disable-extensions", "--no-first-run", "--remote-allow-origins=*", f"--remote-debugging-port={PORT}"]


class Page:
    """A tab. Calls wait for their answers; what the browser tells meanwhile is in `told`: [(method, parameters)]."""

    def __init__(self, namespace, address):
        self.told = []
        self._loop = asyncio.new_event_loop()
        self._answers, self._count = {}, 0
        handle = namespace.inside(socket.create_connection, ("127.0.0.1", PORT), 10)
        handle.setblocking(False)
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._socket = self._wait(self._connect(address, handle))
        self._reader = asyncio.run_coroutine_threadsafe(self._read(), self._loop)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _wait(self, awaited, timeout=30):
        async def run():
            return await asyncio.wait_for(awaited, timeout)
        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(timeout + 5)

    @staticmethod
    async def _connect(address, handle):
        return await websockets.connect(address, sock=handle, max_size=None, ping_interval=None)

    async def _read(self):
        async for text in self._socket:
            message = json.loads(text)
            if "id" in message:
                self._answers.pop(message["id"]).set_result(message)
            else:
                self.told.append((message["method"], message.get("params", {})))

    async def _ask(self, method, parameters):
        self._count += 1
        answer = self._answers[self._count] = self._loop.create_future()
        await self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        return await answer

    def call(self, method, **parameters):
        answer = self._wait(self._ask(method, parameters))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def value(self, expression):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, url):
        self.told.clear()
        self.call("Page.navigate", url=url)

    def look(self, width, height, dark, scale=1):
        """The size of the window, and which colours the user prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def screenshot(self, path):
        """The whole page as PNG."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def parameters(self, method):
        return [parameters for told, parameters in list(self.told) if told == method]

    def close(self):
        with contextlib.suppress(Exception):
            self._wait(self._socket.close(), 3)
        self._reader.cancel()
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextlib.contextmanager
def chromium(lab, namespace):
    """A page of a browser that runs in that namespace."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        process = lab.start(namespace, "chromium", ["env", f"HOME={home}", "chromium", *_WORDS,
                                                    f"--user-data-dir={home}", "about:blank"])
        try:
            tabs = lab.wait_for(lambda: _tabs(namespace), "chromium", timeout=60)
            page = Page(namespace, next(tab for tab in tabs if tab["type"] == "page")["webSocketDebuggerUrl"])
            try:
                yield page
            finally:
                page.close()
        finally:
            lab.stop(process)


def _tabs(namespace):
    def ask():
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/json/list", timeout=5) as answer:
            return json.load(answer)
    with contextlib.suppress(OSError):
        return [tab for tab in namespace.inside(ask) if tab["type"] == "page"]
    return None
