"""Names of the files of a training.

`CHECKPOINT` is everything that it needs to go on, and is gone when it has ended; `MODEL`, `DESCRIPTION` and `VALUES`
are the finished attacker.
"""

CHECKPOINT = "checkpoint.pt"
MODEL = "model.safetensors"
DESCRIPTION = "recipe.json"
VALUES = "values.csv"
