"""Emulated links: their parameters, and the linkemu process that carries them between two namespaces."""

import dataclasses
import json
import pathlib
import socket
import time

QUEUE_SECONDS = 0.05  # a link's queue holds this time's worth of its rate unless queue_bytes is set


@dataclasses.dataclass
class Link:
    """One link of a site, the same in both directions. `rtt_ms` counts both; `more` holds other linkemu parameters."""

    name: str
    rate_mbit: float = 100
    rtt_ms: float = 10
    loss: float = 0.0
    more: dict = dataclasses.field(default_factory=dict)

    def parameters(self):
        queue = int(self.rate_mbit * 1e6 / 8 * QUEUE_SECONDS)
        return {"rate_mbit": self.rate_mbit, "delay_ms": self.rtt_ms / 2, "loss": self.loss,
                "queue_bytes": max(queue, 64 * 1024), **self.more}


class Wire(Link):
    """A bare veth pair instead of an emulated link: as fast as the kernel, without a process that carries packets."""

    def __init__(self, name):
        super().__init__(name, rate_mbit=0, rtt_ms=0)


class LinkEmulator:
    """The linkemu process. `links` is a list of (name, near namespace, device, far namespace, device, Link)."""

    def __init__(self, lab, links, seed):
        self._control = lab.directory / "links.sock"
        config = {"seed": seed, "control": str(self._control), "links": []}
        for name, near, near_device, far, far_device, link in links:
            config["links"].append({"name": name,
                                    "a": {"netns": near.name, "device": near_device},
                                    "b": {"netns": far.name, "device": far_device},
                                    "ab": link.parameters(), "ba": link.parameters()})
        path = pathlib.Path(lab.directory / "links.json")
        path.write_text(json.dumps(config, indent=1), encoding="utf-8")
        self.process = lab.start(None, "linkemu", [lab.binary("linkemu"), path])
        lab.wait_for_line("linkemu", "ready")

    def set(self, link, direction="both", **parameters):
        """Changes a link at once: set("wifi", down=True). Directions: "ab" (from edge or host), "ba", "both"."""
        return self._ask({"cmd": "set", "link": link, "direction": direction, "params": parameters})

    def stats(self):
        return self._ask({"cmd": "stats"})

    def _ask(self, question, timeout=5):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
            channel.settimeout(timeout)
            deadline = time.monotonic() + timeout
            channel.connect(str(self._control))
            channel.sendall(json.dumps(question).encode() + b"\n")
            answer = b""
            while not answer.endswith(b"\n") and time.monotonic() < deadline:
                part = channel.recv(65536)
                if not part:
                    break
                answer += part
        answer = json.loads(answer)
        if isinstance(answer, dict) and answer.get("error"):
            raise RuntimeError(f"linkemu: {answer['error']} (asked {question})")
        return answer
