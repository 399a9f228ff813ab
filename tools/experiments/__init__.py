"""The experiments of sim/experiments: runs their grids, judges the papers' claims, writes tables and plots."""
