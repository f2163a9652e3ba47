"""Sound for listening tests: uniform stimulus files, and the noises and tones of the screening tests.

Nothing here knows of studies in a database. Samples are float64 in [-1, 1) or int16, shape (n,) or (n, 2); rates in Hz.
"""
