"""Target of the newcomer's walk: the guide's own commands, typed at two fresh Debian machines, from the packages to a
page that a host of the edge's LAN loads."""

import contextlib
import http.server
import json
import os
import pathlib
import re
import tempfile
import threading
import time

from lab.netns import Namespace, run
from packages.deb import Build
from packages.source import RELEASES, Source

from . import MISSING, option, require, target
from ._builds import dependencies
from ._fresh import COLUMNS, UPLINKS, Fresh, bridge, lines_of
from ._guide import GUIDE, commands_of, file_of

MOST = 5  # commands
PAGE = "192.0.2.80"  # a server of the Internet; only the concentrator has a way to it
HOST, GATEWAY = "192.168.10.20/24", "192.168.10.1"  # a host of the LAN; the edge, as the guide's file has it
HUB_OUTSIDE = f"{UPLINKS['host0'][0]}.3"
_INVITATION = re.compile(r"braid-invitation-\S+/\S+")
_APT_OWN = re.compile(r"(Get|Hit|Ign|Err):\d+ |(Preparing to unpack|Unpacking|Setting up|Processing triggers) |"
                      r"Note, selecting |N: |Notice: ")
_SIZE = re.compile(r"Need to get [^\n]*of archives|After this operation, [^\n]*used|"
                   r"(?:Download size|Space needed): [^\n]*")
# Warnings that say something of these machines and nothing of Braid: (pattern, why).
EXPLAINED = [(re.compile(r"dbus-daemon.*Failed to set fd limit"),
              "a machine in a container may not raise its limits")]


def answer_with(invitation):
    """What a newcomer types at a question: the invitation, `y` where `join` asks if all still works, else Enter."""

    def answer(prompt):
        if prompt.startswith("The invitation") and prompt.endswith(": "):
            return invitation
        if prompt.startswith("Is this machine still reached?"):
            return "y"
        return "" if re.search(r"(\[[Yy]/[Nn]\]|\]:) $", prompt) else None

    return answer


def invitation_in(shown):
    """The invitation that stands on a line of its own; "" when there is none."""
    return next((line for line in lines_of(shown) if _INVITATION.fullmatch(line)), "")


def wide_lines(shown):
    """Lines of Braid's output that are wider than a terminal. The invitation is one line that is copied as a whole."""
    return [line for line in lines_of(shown)
            if len(line) > COLUMNS and not _INVITATION.fullmatch(line) and not _APT_OWN.match(line)]


def unexplained(journal, explained):
    """Lines of `journalctl --output=short` without date and host that nothing in `explained` explains."""
    told = [line.split(" ", 4)[-1] if re.match(r"\w{3} \d\d ", line) else line for line in journal.splitlines()]
    return [line for line in told if line and not line.startswith("-- ")
            and not any(pattern.search(line) for pattern, _ in explained)]


def type_in(commands, machines):
    """Types the commands. {what was shown of each: line}"""
    invitation, shown = "", {}
    for command in commands:
        said = machines[command.machine].type_at_terminal(command.line, answer_with(invitation))
        shown[f"{command.machine}: {command.line}"] = said
        invitation = invitation_in(said) or invitation
    return shown


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.askers.append(self.client_address[0])
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"page\n")

    def log_message(self, *_):
        pass


class _Outside:
    """The Internet, with a page, and a host of the edge's LAN: namespaces of this host. `askers`: who loaded the
    page."""

    def __init__(self, name, zone, stack):
        self._spaces = {}
        for role in ("internet", "laptop"):
            self._spaces[role] = Namespace(f"{name}-{role}")
            stack.callback(self._spaces[role].delete)
        internet = self._spaces["internet"]
        run("ip", "link", "add", f"i{name}", "type", "veth", "peer", "name", "eth0", "netns", internet.name)
        run("ip", "link", "set", f"i{name}", "master", f"vz-{zone}", "up")
        internet.address("eth0", f"{UPLINKS['host0'][0]}.1/24")
        internet.address("lo", f"{PAGE}/32")
        server = internet.inside(http.server.ThreadingHTTPServer, (PAGE, 80), _Page)
        self.askers = server.askers = []
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def plug(self, device):
        """Plugs the host of the LAN into the edge, by this end of a cable."""
        laptop = self._spaces["laptop"]
        run("ip", "link", "set", device, "netns", laptop.name)
        laptop.address(device, HOST)
        laptop.route("0.0.0.0/0", "via", GATEWAY)

    def loads(self):
        url = f"http://{PAGE}/"
        return self._spaces["laptop"].run("curl", "-s", "--max-time", "10", url, check=False) == "page\n"


def _walk(suite, package, work):
    """(commands, detail) of a walk on two machines of that suite."""
    text = GUIDE.read_text(encoding="utf-8")
    names = {"server": "concentrator", "edge": "edge"}
    commands, lan = commands_of(text, "Five commands", list(names)), file_of(text, "A router from a fresh Debian")
    name = f"b{os.getpid() % 10000}{RELEASES[suite]}"
    detail = {"package": package.name}
    with contextlib.ExitStack() as stack:
        between = stack.enter_context(bridge(f"w{name}"))
        machines = {"server": Fresh(suite, "concentrator", 3, {"host0": [1]}, work, name),
                    "edge": Fresh(suite, "edge", 2, {uplink: [3] for uplink in UPLINKS}, work, name)}
        for machine in machines.values():
            stack.callback(machine.close)
            machine.fill(package, install=False)
        machines["edge"].write(lan[0].lstrip("/"), lan[1])
        cable = f"l{name}"
        machines["server"].start(between)
        machines["edge"].start(between, f"--network-veth-extra={cable}:lan0")
        outside = _Outside(name, name, stack)
        outside.plug(cable)
        before = {role: time.time() for role in machines}
        if outside.loads():
            raise RuntimeError("the LAN reaches the page before anything is typed")
        try:
            shown = type_in(commands, machines)
        except RuntimeError as error:
            raise RuntimeError("\n".join([str(error), *(m.told()[-1500:] for m in machines.values())])) from error
        detail["page"] = outside.loads()
        detail["loaded by"] = sorted(set(outside.askers))
        status = json.loads(machines["edge"].run("braidctl", "status", "--json"))
        paths = json.loads(machines["edge"].run("braidctl", "paths", "--json"))
        active = [flow["uplink"] for peer in paths["peers"] for flow in peer["subflows"] if flow["state"] == "active"]
        detail |= {"active paths": sorted(active), "typed": [line for each in machines.values() for line in each.typed],
                   "apt": sorted({size.strip() for said in shown.values() for size in _SIZE.findall(said)}),
                   "too wide": [f"{command}: {line}" for command, said in shown.items() for line in wide_lines(said)],
                   "warnings": [f"{role}: {line}" for role, machine in machines.items() for line in unexplained(
                       machine.told("-n", "all", "--priority=warning", f"--since=@{before[role]:.0f}"), EXPLAINED)]}
        require(detail, detail["page"], f"{suite}: the LAN's host gets no page")
        require(detail, detail["loaded by"] == [HUB_OUTSIDE], f"{suite}: the page was loaded by another address")
        require(detail, all(peer["up"] for peer in status["peers"]) and set(active) == set(UPLINKS),
                f"{suite}: not every uplink has an active path")
        require(detail, not detail["too wide"], f"{suite}: lines of more than {COLUMNS} columns")
        require(detail, not detail["warnings"], f"{suite}: warnings in the journal")
    return len(commands), detail


@target("see.3", "commands of docs/guide.md that a newcomer types on two fresh machines, of Debian 12 and then of 13, "
        "to which the package was copied, until a host of the edge's LAN loads a page of the Internet by the server's "
        f"address; an active path for each uplink, no line of Braid's output over {COLUMNS} columns (the invitation "
        "aside), no unexplained warning in the journal", "commands", at_most=MOST,
        options=[option("--suite", choices=sorted(RELEASES), help="only this Debian"),
                 option("--package", metavar="FILE", help="with --suite: this package, instead of building one")])
def newcomer(suite, package):
    dependencies("package")
    detail, most = {}, 0
    for each in [suite] if suite else list(RELEASES):
        with tempfile.TemporaryDirectory(prefix="braid-walk-", dir="/var/tmp") as folder:
            work = pathlib.Path(folder)
            given = pathlib.Path(package) if package else Build(Source.of(), each, "amd64").run(work / "package")[0]
            try:
                typed, detail[each] = _walk(each, given, work)
            except (RuntimeError, TimeoutError, OSError, ValueError) as error:
                return None, detail | {MISSING: f"{each}: {str(error)[-3000:]}"}
        most = max(most, typed)
        if MISSING in detail[each]:
            require(detail, False, detail[each].pop(MISSING))
    return most, detail
