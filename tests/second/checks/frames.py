"""Frames one by one: cut off, malformed, without effect (docs/protocol.md, sections 5 and 12); names and PARAMS."""

from .. import frames as f
from ..handshake import SILENCE
from ..session import OWN_PARAMS
from . import check, expect
from .datagrams import PING, quiet_session

BACKGROUND = {"no_peer", "aqm"}  # drops of the host's own packets


def texts_of(row):
    """The frames of a row, as bytes."""
    given = row["frames"]
    if given == "every asking":
        return [f.counted(kind, b"\xff" * (kind % 3)) for kind in range(0x40, 0x60)]
    if given == "every optional":
        return [f.counted(kind, b"\xff" * (kind % 3)) for kind in range(0x62, 0x80)]
    return [bytes.fromhex(text) for text in ([given] if isinstance(given, str) else given)]


def all_bad(place, session, contents):
    """Expects that these datagrams are `bad_frame`, that none is acknowledged, and that the session lives."""
    with place.counts("bad_frame", len(contents)):
        numbers = [session.send(PING + content) for content in contents]
        expect(session.alive(), "the session has ended")
    taken = [contents[numbers.index(number)].hex() for number in numbers if number in session.subflows[0].acked]
    expect(not taken, f"acknowledged: {taken}")


@check
def cut(place, row):
    session, (whole,) = quiet_session(place), texts_of(row)
    all_bad(place, session, [whole[:size] for size in range(1, len(whole))])
    before = place.drops()["bad_frame"]
    number = session.send(PING + whole)
    if whole[0] == f.CLOSE:
        expect(not session.acknowledged(number, timeout=SILENCE), "the session goes on")
    else:
        expect(session.acknowledged(number), "the whole one was not acknowledged")
    expect(place.drops()["bad_frame"] == before, "the whole one is bad_frame")


@check
def malformed(place, row):
    all_bad(place, quiet_session(place), texts_of(row))


@check
def skipped(place, row):
    session = quiet_session(place)
    before = place.drops()
    for content in texts_of(row):
        number = session.send(content if row["id"] == "optional.asking" else PING + content)
        expect(session.acknowledged(number), f"not acknowledged: {content.hex()}")
    after = place.drops()
    grown = {name for name in after if after[name] != before[name]} - BACKGROUND
    expect(not grown, f"counted: {grown}")
    expect(session.alive(), "the session has ended")


# ---- names, addresses, PARAMS

def named(session, name):
    session.challenge(before=f.counted(f.SUBFLOW_NAME, name))
    expect(session.alive(), "the session has ended")


@check
def name_shown(place, _):
    session = quiet_session(place)
    for name in ("sea.1", "LTE-2_x", "a" * 32):
        named(session, name.encode())
        expect(place.shown()["path"] == name, f"{place.shown()['uplink']} instead of {name}")


@check
def name_text(place, _):
    session = quiet_session(place)
    named(session, b"good")
    for name in (b"", b"a" * 33, b"two words", b"\x1b[31m", b".dot", b"-dash", b"a\0", "ü".encode(), b"a/b", b"%s"):
        named(session, name)
        expect(place.shown()["path"] == "good", f"{place.shown()['uplink']}")


@check
def observed_told(place, _):
    session = place.session()
    frame = session.wait_for(f.OBSERVED_ADDRESS)
    own = f.end(*session.subflows[0].socket.getsockname())
    expect(frame and frame.content == own, f"{frame and frame.content.hex()} instead of {own.hex()}")


def noise_of(session):
    entries = session.frames(f.PARAMS)[0].entries
    return [name for name in entries if name % 31 == f.NOISE]


@check
def params_sent(place, _):
    session = place.session()
    carrier = next(each for each in session.came if each.of(f.PARAMS))
    expect(any(0x40 <= frame.type < 0x60 for frame in carrier.frames), "no OPTIONAL_ASKING beside it")
    entries = session.frames(f.PARAMS)[0].entries
    expect(noise_of(session) == [list(entries)[-1]], f"ids: {list(entries)}")
    expect(entries[4] & 3 == 3 and entries[1] >= 1200, f"{entries}")


@check
def params_repeated(place, _):
    taken = []

    def lost(datagram):
        if not taken and datagram.of(f.PARAMS):
            taken.append(datagram)
        return datagram in taken

    session = place.session(lost=lost)
    expect(session.frames(f.PARAMS)[0].entries == taken[0].of(f.PARAMS)[0].entries, "other ones came")


@check
def params_noise(place, _):
    sessions = [place.session() for _ in range(8)]
    ids = {noise_of(session)[0] for session in sessions}
    asking, optional = (
        {frame.type for session in sessions for frame in session.frames(*range(low, high))}
        for low, high in ((0x40, 0x60), (0x62, 0x80)))
    expect(len(ids) >= 6 and len(asking) >= 3 and len(optional) >= 3, f"{ids}, {asking}, {optional}")
    for session in sessions:
        padded = [each for each in session.came if each.of(f.PATH_CHALLENGE) and len(each.raw) == 1200]
        expect(padded and all(each.of(*range(0x62, 0x80)) for each in padded), "a padded challenge without OPTIONAL")


@check
def params_largest(place, _):
    session = place.keyed(lost=lambda datagram: len(datagram.raw) > 1200)  # until PARAMS have arrived
    session.start(((1, 1200), *OWN_PARAMS[1:]))
    session.forget()
    session.lost = lambda datagram: False
    end = place.bound()
    for _ in range(30):
        end.sendto(bytes(1100), ("192.168.10.2", 5000))
    session.pump(timeout=0.5)
    largest = max(len(each.raw) for each in session.came)
    expect(len(session.frames(f.DATA)) >= 30 and largest <= 1200, f"{largest} bytes")
