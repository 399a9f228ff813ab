"""Compares Braid's own simulator with ns-3: the same scenarios in both, and the difference of their means. See
evaluation/ns3/README.md; evaluation/ns3/compare is the command line."""
