"""The design of a listening test: which evaluator meets what, in which order, and the proof that it is balanced.

Nothing here knows of studies in a database: everything is a function of its arguments and a seed.
"""
