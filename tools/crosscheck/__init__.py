"""Braid's own simulator against ns-3: the same scenarios in both, and how far apart their means are. See
docs/evaluation/ns3.md; sim/ns3/compare is the command line."""
