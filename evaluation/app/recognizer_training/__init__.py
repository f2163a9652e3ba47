"""Recognisers of phones that are trained on original or anonymised speech, and their errors."""
