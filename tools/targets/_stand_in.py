"""A control socket that answers as a large gateway would: a real daemon's answers with its peers and paths repeated."""

import contextlib
import json
import socket
import socketserver
import threading

LONGEST_NAME = 32  # bytes, of a peer or an uplink (src/base/name.h)
SILENT, DOWN = 7, 9  # each such path is down, each such peer


def names(base, count):
    """{made name: index} of `count` things called `base`. One of them is as long as a name may be."""
    if count == 1:
        return {base: 0}
    made = [f"{base}-{index:0{len(str(count))}}" for index in range(count)]
    made[1] = (made[1] + "-with-a-name-as-long-as-possible")[:LONGEST_NAME]
    return {name: index for index, name in enumerate(made)}


def _scaled(thing, index):
    """Others carry more or less."""
    for name in ("sent_bytes", "received_bytes"):
        if name in thing:
            thing[name] = thing[name] * (1 + index % 5) // 3
    return thing


class Crowd:
    """Makes answers of one peer, or of each, into those of many: `peers` for each peer, `paths` for each path."""

    def __init__(self, peers=1, paths=1):
        self.peers, self.paths = peers, paths
        self._base = {}  # made name: real name

    def _names(self, base, count):
        made = names(base, count)
        self._base.update(dict.fromkeys(made, base))
        return made.items()

    def asked(self, request):
        """The question to the real daemon."""
        return {key: self._base.get(value, value) if key in ("peer", "path") else value
                for key, value in request.items()}

    def answer(self, request, answer):
        """What is told of the real daemon's answer."""
        out = dict(answer)
        if isinstance(answer.get("peers"), list):
            out["peers"] = [self._peer(peer, name, index) for peer in answer["peers"]
                            for name, index in self._names(_name(peer), self.peers)]
        if isinstance(answer.get("paths"), list):
            out["paths"] = [{**path, "peer": peer, "path": name} for path in answer["paths"]
                            for peer, _ in self._names(path["peer"], self.peers)
                            for name, _ in self._names(path["path"], self.paths)]
        if "gateway" in answer:
            uplinks = [{**uplink, "name": name} for uplink in answer["gateway"]["uplinks"]
                       for name, _ in self._names(uplink["name"], self.paths)]
            out["gateway"] = {**answer["gateway"], "uplinks": uplinks}
        return out | {key: value for key, value in request.items() if key in ("peer", "path")}

    def _peer(self, peer, name, index):
        if isinstance(peer, str):
            return name
        out = {**peer, "name": name}
        if self.peers > 1 and index % DOWN == 4:
            return out | {"up": False, "subflows": [], "flows": [], "streams": [], "flow_count": 0, "stream_count": 0}
        out["subflows"] = [self._subflow(subflow, path, place) for subflow in peer.get("subflows", [])
                           for path, place in self._names(subflow["path"], self.paths)]
        return _scaled(out, index)

    def _subflow(self, subflow, path, index):
        out = {**subflow, "path": path, "uplink": path if subflow["uplink"] == subflow["path"] else
               subflow["uplink"], "id": f"{int(subflow['id']) * self.paths + index}"}
        if self.paths > 1 and index % SILENT == 5:
            out.update(state="failed", down_s=10.0 * index)
        return _scaled(out, index)


def _name(peer):
    return peer if isinstance(peer, str) else peer["name"]


def _ask(path, question):
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(path)
        link.sendall(question.encode() + b"\n")
        with link.makefile("rb") as answer:
            return answer.readline()


class StandIn(socketserver.ThreadingUnixStreamServer):
    """Serves `path`, asking the daemon at `real`. Use as a context manager."""

    daemon_threads = True

    def __init__(self, path, real, crowd):
        stand_in = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # braid-web has ended
                    for line in self.rfile:
                        self.wfile.write(stand_in.ask(json.loads(line)))

        super().__init__(str(path), Handler)
        self._real, self._crowd, self._lock = str(real), crowd, threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def ask(self, request):
        with self._lock:
            question = json.dumps(self._crowd.asked(request))
            answer = json.loads(_ask(self._real, question))
            return (json.dumps(self._crowd.answer(request, answer)) + "\n").encode()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
