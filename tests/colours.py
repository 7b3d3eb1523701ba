"""The contrast of colours, as WCAG 2.2 defines it."""

import numpy as np


def linear(colour):
    """Return the linear RGB values of a colour such as #077cd6."""
    values = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(first, second):
    """Return the contrast ratio of two colours, from 1 to 21."""
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)
