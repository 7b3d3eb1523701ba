"""The papers' experiments: what is claimed, what was measured, and whether it holds (`python -m experiments`)."""
