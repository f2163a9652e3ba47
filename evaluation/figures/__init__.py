"""Figures of results as SVG, PNG and PDF; matplotlib is imported only while one is drawn."""
