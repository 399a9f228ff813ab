"""TCP connections with every kind of end. The hosts check every byte and how each connection ended:

    python3 -m lab.ends serve ADDRESS PORT
    python3 -m lab.ends ask ADDRESS PORT --count N --seed S --at-once K --source ADDRESS...

Nobody listens on the port PORT + 1. `ask` writes one line of JSON, {kind: {outcome: connections}}, and `serve` does so
on SIGTERM. GOOD is the only correct outcome.
"""

import argparse
import asyncio
import collections
import contextlib
import json
import random
import resource
import signal
import socket
import struct

GOOD, WRONG, HUNG = "good", "wrong bytes", "hung"
CLIENT_FIRST, SERVER_FIRST, BOTH, STALLED, CLIENT_RESETS, SERVER_RESETS, REFUSED = KINDS = (
    "client ends first", "server ends first", "both at once", "reader sleeps", "client resets", "server resets",
    "refused")
HEADER = struct.Struct("!BIII")  # kind, number, bytes from the client, bytes from the server
PATIENCE = 60  # seconds that a connection may take
SLEEP = 2  # most seconds until a sleeping reader reads
SMALL, LARGE, LARGE_SHARE = 6_000, 300_000, 0.02  # bytes each way
CONTENT = random.Random(1).randbytes(2 * LARGE)
CHUNK = 1 << 16
RESET = struct.pack("ii", 1, 0)  # SO_LINGER


def content(number, way, size):
    """The data in one direction of a connection."""
    first = (number * 7919 + way * 104729) % LARGE
    return memoryview(CONTENT)[first:first + size]


class Otherwise(Exception):
    """The connection did not end as it should; the text says how."""


async def read_to_end(reader, wanted):
    """Reads to the end of the stream, which must be `wanted`."""
    got = 0
    while part := await reader.read(CHUNK):
        if part != wanted[got:got + len(part)]:
            raise Otherwise(WRONG)
        got += len(part)
    if got != len(wanted):
        raise Otherwise(f"an end with {'no' if got == 0 else 'some'} of the bytes")


async def read_to_reset(reader, wanted):
    """Reads until a reset. The bytes before it must be a prefix of `wanted`."""
    got = 0
    try:
        while part := await reader.read(CHUNK):
            if part != wanted[got:got + len(part)]:
                raise Otherwise(WRONG)
            got += len(part)
    except ConnectionResetError:
        return
    raise Otherwise("an end in place of a reset")


async def send(writer, data):
    writer.write(data)
    await writer.drain()


async def send_all(writer, data):
    await send(writer, data)
    writer.write_eof()


def reset(writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


async def outcome(work, writer):
    """Closes a connection and returns how it had ended."""
    try:
        async with asyncio.timeout(PATIENCE):
            await work
        return GOOD
    except TimeoutError:
        return HUNG
    except Otherwise as error:
        return str(error)
    except OSError as error:
        return type(error).__name__
    finally:
        if writer:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


# ---- the server

async def answer(kind, reader, writer, there, back):
    """`there`: what the client sends; `back`: what it gets."""
    if kind == SERVER_FIRST:
        await send_all(writer, back)
        await read_to_end(reader, there)
    elif kind == BOTH:
        await asyncio.gather(send_all(writer, back), read_to_end(reader, there))
    elif kind == CLIENT_RESETS:
        await send(writer, back[:1])
        await read_to_reset(reader, there)
    elif kind == SERVER_RESETS:
        await send(writer, back)
        reset(writer)
    else:
        if kind == STALLED:
            await asyncio.sleep(random.uniform(0, SLEEP))
        await read_to_end(reader, there)
        await send_all(writer, back)


async def serve(address, port):
    outcomes = {kind: collections.Counter() for kind in (*KINDS, "without a header")}
    open_ones = set()

    async def connection(reader, writer):
        open_ones.add(asyncio.current_task())
        try:
            await converse_with(reader, writer)
        except (IndexError, ValueError) as error:  # a header that no client sends
            outcomes["without a header"][type(error).__name__] += 1
            writer.transport.abort()
        finally:
            open_ones.discard(asyncio.current_task())

    async def converse_with(reader, writer):
        try:
            async with asyncio.timeout(PATIENCE):
                number, identity, there, back = HEADER.unpack(await reader.readexactly(HEADER.size))
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            outcomes["without a header"][type(error).__name__] += 1
            writer.transport.abort()
            return
        kind = KINDS[number]
        work = answer(kind, reader, writer, content(identity, 0, there), content(identity, 1, back))
        outcomes[kind][await outcome(work, writer)] += 1

    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with await asyncio.start_server(connection, address, port, backlog=4096):
        print("ready", flush=True)
        await over.wait()
    if open_ones:  # each has at most PATIENCE for its header and for the rest
        _, hung = await asyncio.wait(open_ones, timeout=2 * PATIENCE)
        outcomes["without a header"][HUNG] += len(hung)
    return outcomes


# ---- the client

async def converse(kind, reader, writer, header, there, back):
    if kind == SERVER_FIRST:
        await send(writer, header)
        await read_to_end(reader, back)
        await send_all(writer, there)
    elif kind == BOTH:
        await asyncio.gather(send_all(writer, header + there), read_to_end(reader, back))
    elif kind == CLIENT_RESETS:
        await send(writer, header + there)
        if await reader.readexactly(1) != back[:1]:
            raise Otherwise(WRONG)
        reset(writer)
    elif kind == SERVER_RESETS:
        await send(writer, header)
        await read_to_reset(reader, back)
    else:
        await send_all(writer, header + there)
        await read_to_end(reader, back)


async def be_refused(reader, writer):
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        await send(writer, b"?")
        await read_to_reset(reader, b"")


async def ask_one(address, port, source, identity, chance):
    kind = chance.choice(KINDS)
    size = LARGE if kind == STALLED or chance.random() < LARGE_SHARE else SMALL
    there, back = (content(identity, way, chance.randint(1, size)) for way in (0, 1))
    header = HEADER.pack(KINDS.index(kind), identity, len(there), len(back))
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(address, port + (kind == REFUSED), local_addr=(source, 0))
    except OSError as error:  # TimeoutError is one, too
        # The reset of an accepted connection may arrive before this program has looked at it.
        refused = kind == REFUSED and isinstance(error, (ConnectionRefusedError, ConnectionResetError))
        return kind, GOOD if refused else type(error).__name__
    work = (be_refused(reader, writer) if kind == REFUSED else converse(kind, reader, writer, header, there, back))
    return kind, await outcome(work, writer)


async def ask(address, port, count, seed, at_once, sources):
    outcomes = {kind: collections.Counter() for kind in KINDS}
    numbers = iter(range(count))

    async def some(own):
        chance = random.Random(f"{seed}.{own}")
        for identity in numbers:
            kind, said = await ask_one(address, port, sources[identity % len(sources)], identity, chance)
            outcomes[kind][said] += 1

    await asyncio.gather(*(some(own) for own in range(at_once)))
    return outcomes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["serve", "ask"])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=100)
    parser.add_argument("--source", nargs="+", default=["0.0.0.0"])
    words = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    work = (serve(words.address, words.port) if words.role == "serve" else
            ask(words.address, words.port, words.count, words.seed, words.at_once, words.source))
    print(json.dumps({kind: dict(+each) for kind, each in asyncio.run(work).items() if +each}))


if __name__ == "__main__":
    main()
