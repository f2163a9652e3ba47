"""Experiments on real speech: longer than a benchmark, without a budget, and recorded in `docs`."""
