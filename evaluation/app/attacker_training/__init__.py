"""Trainings of attackers on anonymised speech."""
