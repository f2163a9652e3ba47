"""Commands of ``vp``: one module for each, all of them thin."""
