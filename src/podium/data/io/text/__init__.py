"""Ranking data as text: LETOR and SVMlight lines, and CSV or TSV."""
