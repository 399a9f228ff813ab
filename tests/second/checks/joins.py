"""Joining (docs/protocol.md, section 14)."""

import os
import time

from .. import crypto, dtls, joining
from ..handshake import SILENCE
from ..joining import Invitation
from ..session import Session
from . import check, expect
from .datagrams import PING
from .flows import TIMELY, f, inner, received

INVITED = "192.168.100.0/24"  # a network that the invitation names


class Joiner:
    """A gateway that nobody knows yet, with a joining handshake that is done."""

    def __init__(self, place, line=None, identity=None):
        self.place = place
        self.line = line or place.invite(f"van{os.urandom(3).hex()}", "--network", INVITED)
        self.invitation = Invitation(joining.secret_of(self.line))
        self.identity = identity or dtls.Identity()
        self.handshake = place.handshake(self.identity, protocols=(b"\x3a\x3a?", joining.PROTOCOL)).run()
        expect(self.handshake.client.protocol() == joining.PROTOCOL, f"{self.handshake.client.protocol()}")
        exported = self.handshake.client.exporter(crypto.JOIN_EXPORTER, 96)
        self.secrets, self.binding = (exported[:32], exported[32:64]), exported[64:]

    def request(self, networks=(), **changes):
        """A request; `changes`: binding, own, theirs, invitation."""
        invitation = changes.get("invitation", self.invitation)
        return invitation.request(changes.get("binding", self.binding), changes.get("own", self.identity.pin),
                                  changes.get("theirs", self.place.pin), networks)

    def sealed(self, request):
        """The body of a request. A handshake may seal one only; checks of what is dropped seal more."""
        return joining.seal(self.handshake.client.suite, self.secrets[0], joining.REQUEST, request)

    def answer(self, body, timeout=2):
        """Sends a request's body until it is answered: (the answer, its body), or None when the time is over."""
        deadline, pause = time.monotonic() + timeout, 0.1
        while (left := deadline - time.monotonic()) > 0:
            self.handshake.send_body(body)
            opened = self.handshake.receive(min(pause, left))
            if opened and opened.body[:1] == bytes([joining.ANSWER]):
                return joining.open_answer(self.handshake.client.suite, self.secrets[1], opened.body), opened.body
            pause *= 2
        return None

    def ask(self, request=None):
        got = self.answer(self.sealed(request or self.request()))
        expect(got, "no answer came")
        return got[0]

    def comes_up(self, answer):
        """Begins a session as the new peer, which carries a packet of its address."""
        session = self.place.session(self.identity)
        end = self.place.bound()
        source = next(address for address, _ in answer["own"] if "." in address)
        session.send(f.data(TIMELY, 0, inner.udp((source, 5000), end.getsockname(), b"joined")))
        expect(received(end) == [b"joined"], "the packet was not delivered")
        return session


def coded(answer, code):
    expect(answer["code"] == code, f"{answer}")


@check
def join_whole(place, _):
    joiner = Joiner(place)
    answer = joiner.ask(joiner.request([("192.168.77.0", 24)]))
    coded(answer, joining.DONE)
    expect(answer["name"].startswith("van") and answer["own"] and answer["theirs"], f"{answer}")
    expect(answer["networks"] == [("192.168.100.0", 24)], f"{answer}")
    joiner.comes_up(answer)


@check
def join_again(place, _):
    joiner = Joiner(place)
    body = joiner.sealed(joiner.request())
    first = joiner.answer(body)
    expect(first, "no answer came")
    coded(first[0], joining.DONE)
    second = joiner.answer(body)
    expect(second and second[1] == first[1], "another answer came")


def forged(joiner):
    """An invitation of the joiner's name with another secret."""
    other = Invitation(os.urandom(32))
    other.name = joiner.invitation.name
    return other


@check
def join_signature(place, _):
    joiner = Joiner(place)
    coded(joiner.ask(joiner.request(invitation=forged(joiner))), joining.UNKNOWN)


@check
def join_stranger(place, _):
    joiner = Joiner(place)
    coded(joiner.ask(joiner.request(invitation=Invitation(os.urandom(32)))), joining.UNKNOWN)


@check
def join_bound(place, _):
    line = Joiner(place).line
    for changes in ({"binding": bytes(32)}, {"own": bytes(32)}, {"theirs": bytes(32)}):
        joiner = Joiner(place, line)
        coded(joiner.ask(joiner.request(**changes)), joining.UNKNOWN)
    joiner = Joiner(place, line)
    coded(joiner.ask(joiner.request()[:73] + joining.networks([("192.168.78.0", 24)])), joining.UNKNOWN)
    coded(Joiner(place, line).ask(), joining.DONE)


@check
def join_seal(place, _):
    joiner = Joiner(place)
    body = joiner.sealed(joiner.request())
    for at in range(0, len(body), 10):  # some: a handshake takes no more than 24
        joiner.handshake.send_body(body[:at] + bytes([body[at] ^ 1 << at % 8]) + body[at + 1:])
    expect(not joiner.handshake.receive(2 * SILENCE), "it was answered")
    answer = joiner.answer(body)
    expect(answer, "the true one was not answered")
    coded(answer[0], joining.DONE)


@check
def join_format(place, _):
    line = place.invite("van-malformed", "--network", INVITED)
    joiner = Joiner(place, line)

    def listed(*entries, count=None):
        """A signed request with these bytes as its networks."""
        wish = bytes([len(entries) if count is None else count]) + b"".join(map(bytes.fromhex, entries))
        signed = b"braid join 1" + joiner.binding + joiner.identity.pin + place.pin + wish
        return bytes([1]) + joiner.invitation.name + joiner.invitation.key.sign(signed) + wish

    whole = joiner.request()
    for request in (b"", whole[:1], whole[:-1], whole + b"\0", b"\2" + whole[1:],
                    listed("04c0a84d0118"), listed("04c0a84d0021"), listed("05c0a84d0018"), listed(count=1),
                    listed("04c0a84d0018", count=2), listed(*(f"040a00{n:02x}0018" for n in range(33))),
                    listed("06fd0000000000000000000000000000014000")):
        expect(not joiner.answer(joiner.sealed(request), 0.12), f"{request.hex()} was answered")
    coded(Joiner(place, line).ask(), joining.DONE)


@check
def join_used(place, _):
    joiner = Joiner(place)
    answer = joiner.ask()
    coded(answer, joining.DONE)
    joiner.comes_up(answer)
    coded(Joiner(place, joiner.line).ask(), joining.USED)
    stranger = Joiner(place, joiner.line)
    coded(stranger.ask(stranger.request(invitation=forged(joiner))), joining.UNKNOWN)


@check
def join_networks(place, _):
    joiner = Joiner(place)
    answer = joiner.ask(joiner.request([("10.77.5.0", 24)]))
    coded(answer, joining.TAKEN)
    expect(answer["text"], "no text says why")


@check
def join_many(place, _):
    joiner = Joiner(place)
    for _ in range(24):
        joiner.handshake.send_body(joiner.sealed(b"\2"))
    expect(not joiner.answer(joiner.sealed(joiner.request()), 3 * SILENCE), "the 25th request was answered")


@check
def join_session(place, _):
    joiner = Joiner(place)
    generation, name = joiner.handshake.keys()
    session = Session(generation, name, joiner.handshake.socket, joiner.handshake.remote)
    with place.counts("unknown_session"):
        session.send(PING)
        session.pump(timeout=SILENCE)
    expect(not session.came, "a session came of it")


@check
def join_mixed(place, _):
    place.invite(f"van{os.urandom(3).hex()}")
    for protocols in ((joining.PROTOCOL, b"braid/2"), (b"braid/2", joining.PROTOCOL)):
        handshake = place.handshake(dtls.Identity(), protocols=protocols)
        if handshake.hello() and handshake.finish(timeout=2 * SILENCE):
            expect(handshake.client.protocol() == joining.PROTOCOL, "a stranger has made a session")
            generation, name = handshake.keys()
            session = Session(generation, name, handshake.socket, handshake.remote)
            expect(not session.alive(timeout=SILENCE), "a stranger has a session")
