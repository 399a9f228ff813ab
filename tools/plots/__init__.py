"""Plots of rate control over time: behind scripts/plots."""
