"""Epochs and generations of keys (docs/protocol.md, section 4)."""

import time

from .. import crypto
from .. import frames as f
from ..handshake import SILENCE
from ..session import Session
from . import check, expect
from .datagrams import PING, quiet_session
from .flows import burst, carries


def closed(place, session, **how):
    """Expects that a datagram sealed in this way does not open."""
    with place.counts("decrypt_failed"):
        number = session.send(PING, **how)
        expect(not session.acknowledged(number, timeout=SILENCE), f"{how}: it was acknowledged")


def step(session):
    """The next epoch, which the daemon must follow."""
    session.epoch += 1
    session.forget()
    expect(session.alive(), f"epoch {session.epoch} was not taken")
    expect(session.came[-1].epoch == session.epoch, f"the daemon seals in epoch {session.came[-1].epoch}")


@check
def epoch_follows(place, _):
    session = quiet_session(place)
    step(session)
    expect(session.acknowledged(session.send(PING, epoch=0)), "epoch 0 does not open any more")


@check
def epoch_soon(place, _):
    session = quiet_session(place)
    step(session)
    closed(place, session, epoch=2)
    time.sleep(1.5)
    step(session)


@check
def epoch_far(place, _):
    session = quiet_session(place)
    for epoch in (2, 3):
        closed(place, session, epoch=epoch)
    step(session)


@check
def epoch_over(place, _):
    session = quiet_session(place)
    step(session)
    time.sleep(crypto.FORGOTTEN + 0.2)
    closed(place, session, epoch=0)
    expect(session.alive(), "the session has ended")


@check
def epoch_five(place, _):
    session = quiet_session(place)
    for _ in range(5):
        step(session)
        time.sleep(1.6)


@check
def epoch_theirs(place, _):
    with place.changed(place.daemon.config.setdefault("tunnel", {}), **{"rekey-packets": 1024}):
        session, end = quiet_session(place), place.bound()
        for _ in range(110):
            burst(place, session, 10, end, size=1000)
            session.pump(timeout=0.01)
        expect(session.pump(lambda: any(each.epoch == 1 for each in session.came)), "no new epoch came")
        step(session)
        carries(place, session)


# ---- generations

def fresh(place, identity=None, psk=None):
    """(Generation, name) of a fresh handshake."""
    return place.handshake(identity).run().keys(psk)


def answer(session, name):
    """What KEYS_READY says of that handshake; RENEW_KEYS is sent once."""
    session.forget()
    session.send(f.renew_keys(name))
    frame = session.wait_for(f.KEYS_READY, where=lambda each: each.handshake == name)
    expect(frame, "no KEYS_READY came")
    return frame.ready


def made_ready(place, session, psk=None):
    """Makes the next generation ready, at both sides; returns its name."""
    keys, name = fresh(place, psk=psk)
    expect(answer(session, name) == 1, "the keys are not ready")
    session.generations[session.generation + 1] = session.generations[session.generation].next(keys)
    return name


def turn(session):
    """Seals in the next generation from now on; the daemon must do that, too."""
    session.generation, session.epoch = session.generation + 1, 0
    session.forget()
    expect(session.alive(), f"generation {session.generation} was not taken")
    expect(session.came[-1].generation == session.generation, "the daemon seals in another one")


@check
def renew_whole(place, _):
    session = quiet_session(place)
    made_ready(place, session)
    number = session.subflows[0].largest
    turn(session)
    expect(session.came[-1].number > number, "packet numbers begin again")
    carries(place, session)
    expect(session.acknowledged(session.send(PING, generation=0)), "generation 0 does not open any more")


@check
def renew_handshake(place, _):
    expect(answer(quiet_session(place), 0x12345678) == 0, "the keys are ready")


@check
def renew_again(place, _):
    session = quiet_session(place)
    name = made_ready(place, session)
    expect(answer(session, name) == 1, "not ready the second time")
    turn(session)
    expect(answer(session, name) == 1, "not ready behind the change")


@check
def renew_early(place, _):
    session = quiet_session(place)
    keys, _ = fresh(place)
    session.generations[1] = session.generations[0].next(keys)
    closed(place, session, generation=1, epoch=0)
    expect(session.alive(), "the session has ended")


@check
def renew_replaced(place, _):
    session = quiet_session(place)
    made_ready(place, session)
    first = session.generations[1]
    made_ready(place, session)
    second, session.generations[1] = session.generations[1], first
    closed(place, session, generation=1, epoch=0)
    session.generations[1] = second
    turn(session)


@check
def renew_consumed(place, _):
    session = quiet_session(place)
    keys, name = fresh(place)
    expect(answer(session, name) == 1, "the keys are not ready")
    other = Session(keys, name, session.subflows[0].socket, session.subflows[0].remote)
    with place.counts("unknown_session"):
        expect(not other.alive(timeout=SILENCE), "it became a session")


@check
def renew_used(place, _):
    earlier = place.session()
    session = quiet_session(place)
    expect(answer(session, earlier.id) == 0, "the keys are ready")


@check
def renew_other(place, _):
    session = quiet_session(place)
    _, name = fresh(place, place.other)
    expect(answer(session, name) == 0, "the keys are ready")


@check
def renew_fails(place, _):
    session = quiet_session(place)
    handshake = place.handshake()
    expect(handshake.hello(), "no flight of the server came")
    handshake.finish(("certificate", "ccs", "finished"), SILENCE)
    carries(place, session)


@check
def renew_epoch(place, _):
    session = quiet_session(place)
    step(session)
    made_ready(place, session)
    turn(session)
    time.sleep(1.5)
    step(session)


@check
def renew_over(place, _):
    session = quiet_session(place)
    made_ready(place, session)
    turn(session)
    time.sleep(crypto.FORGOTTEN + 0.2)
    closed(place, session, generation=0)
    expect(session.alive(), "the session has ended")


@check
def renew_late(place, _):
    session = quiet_session(place)
    _, name = fresh(place)
    time.sleep(11)
    expect(answer(session, name) == 0, "the keys are ready")
