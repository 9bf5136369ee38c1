"""Grids of scenarios, comparisons of methods, summaries, tables and figures."""
