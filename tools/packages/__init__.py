"""Packages of Braid: Debian's (scripts/package), and what is made of them.

Every package is built in a fresh Debian of its suite, so that what it needs is what packaging/debian/control says and
nothing else, and the host's own packages do not matter.
"""
