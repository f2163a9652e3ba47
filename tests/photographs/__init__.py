"""Photographs of every page of a running portal, with what is checked of each: `python -m tests.photographs`.

A folder of its own with a running demo is what it is for. It creates no object but one session of an evaluator, and
presses nothing that publishes, closes or deletes.
"""
