"""Measurements against other tools: `python -m bench [NAME …]` writes bench/results/."""
