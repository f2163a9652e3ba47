"""Training a speaker recogniser on anonymised speech: the semi-informed attacker, with a target classifier or not."""
