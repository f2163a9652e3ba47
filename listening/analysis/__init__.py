"""What listeners said, as figures with honest uncertainty: pure, without Django, usable from a notebook or a shell.

A study comes in as `Inputs` (a folder or zip of plain CSV files, `bundle`), or as any lab's table of ratings
(`reading`), and `analyse` turns it into `Results`: nothing but tables, each described in `tables`. Pages, files and
figures only read those tables, so that anyone who holds the inputs can make every number and picture again.

Conventions: rates and shares in [0, 1]; equal error rates interpolated on the polygon of the DET curve; ``original`` is
unprotected speech; raw ratings and normalised ones never stand in one table.
"""
