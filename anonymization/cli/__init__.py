"""The command line ``python -m anonymization``: one module for each command, and what they share."""
