"""A second implementation of Braid's protocol, written from docs/protocol.md, and a peer that attacks a real daemon.

`python3 -m second` with Debian's Python makes each row of tests/second.yaml true or tells that it is not; see run.py.
Nothing here is shared with the daemon except the document. What the document calls initiator is this peer's usual role.
"""
