"""Readers and writers of ranking data: LETOR text, CSV and TSV, Parquet."""
