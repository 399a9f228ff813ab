"""Compares Braid's own simulator with ns-3: the same scenarios in both, and the difference of their means. See
docs/evaluation/ns3.md; sim/ns3/compare is the command line."""
