"""Training and scoring on a cluster."""
