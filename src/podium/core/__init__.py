"""What every package uses: compiled code, threads, exact sums, files, progress."""
