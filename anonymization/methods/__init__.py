"""Anonymisers as plain functions of samples, importable from a notebook: `registry` lists them.

Nothing heavy is imported before a method runs.
"""
