"""``vp``, the portal from the shell: check an archive before it is sent, send it, and look at what became of it."""
