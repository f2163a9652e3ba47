"""Attacks on submissions: vectors of speakers, scores of trials, EERs."""
