"""The experiments of evaluation/experiments: runs their grids, judges the papers' claims, draws tables and plots."""
