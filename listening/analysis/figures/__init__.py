"""The figures that a challenge publishes of its listeners, drawn from nothing but the tables of an analysis.

`figures_of` lists them with their words and numbers; `Figure.draw` and `draw_all` make the files.
"""

from listening.analysis.figures.catalogue import draw_all, draw_files, figures_of
from listening.analysis.figures.figure import Figure, FigureFile

__all__ = ["Figure", "FigureFile", "draw_all", "draw_files", "figures_of"]
