"""The questions of a study: the page on which organizers edit them, and what evaluators will see."""
