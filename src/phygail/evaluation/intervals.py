"""95 % confidence intervals of what the curves show, by the normal distribution as in the tables.

Each gives (estimate, low, high); the limits of a single case are NaN.
"""

from __future__ import annotations

import math

import numpy as np

from phygail.evaluation.summary import NORMAL_95

Interval = tuple[float, float, float]


def mean_interval(values: np.ndarray) -> Interval:
    """Mean of (n,) values; nothing below zero, since times and counts are not."""
    estimate = float(values.mean())
    error = _half_width(values - estimate)
    return estimate, max(0.0, estimate - error) if error >= 0 else math.nan, estimate + error


def share_interval(successes: np.ndarray) -> Interval:
    """Share of ones among (n,) zeros and ones, by Wilson: 50 successes of 50 leave room down to 0.93."""
    n, share = len(successes), float(successes.mean())
    if n < 2:
        return share, math.nan, math.nan
    shrink = 1 + NORMAL_95**2 / n
    middle = (share + NORMAL_95**2 / (2 * n)) / shrink
    error = NORMAL_95 / shrink * math.sqrt(share * (1 - share) / n + NORMAL_95**2 / (4 * n**2))
    return share, max(0.0, middle - error), min(1.0, middle + error)


def ratio_interval(steps: np.ndarray, bounds: np.ndarray) -> Interval:
    """Sum of (n,) steps over sum of (n,) bounds.

    To first order the ratio errs by the mean of the residuals steps - ratio * bound over the mean bound.
    """
    ratio = float(steps.sum() / bounds.sum())
    error = _half_width(steps - ratio * bounds) / float(bounds.mean())
    return ratio, max(1.0, ratio - error) if error >= 0 else math.nan, ratio + error  # no method is below the bound


def _half_width(residuals: np.ndarray) -> float:
    """1.96 standard errors of a mean with these (n,) residuals; NaN for a single case."""
    n = len(residuals)
    return NORMAL_95 * math.sqrt(float((residuals**2).sum()) / (n - 1) / n) if n > 1 else math.nan
