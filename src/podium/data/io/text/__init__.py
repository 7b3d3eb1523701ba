"""Ranking data as text: LETOR / SVMlight lines, and delimited files with a header."""
