"""Linear rankers, trained on the same objectives as trees."""

from podium.linear.descent import Descended, Descent

__all__ = ["Descended", "Descent"]
