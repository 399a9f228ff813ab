"""Packages of Braid: Debian packages (scripts/package), and the container image made from them.

Every package is built in a fresh Debian of its suite, with only the dependencies that packaging/debian/control names.
So the host's own packages do not matter.
"""
