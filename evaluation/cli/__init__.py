"""The command line ``python -m evaluation``: one module for each command, all of them thin."""
