"""Files in and out: LETOR and delimited text, Parquet, by suffix."""
