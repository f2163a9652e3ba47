"""Backups of the portal, made while it runs, restored into an empty one and verified; and editions as folders."""
