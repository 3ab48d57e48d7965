"""The one exception for mistakes that a user can mend."""


class CPTuningError(ValueError):
    """What is wrong, where, and what to do, in one sentence: the command prints just that.

    It is a ``ValueError``, so code written for scikit-learn catches it as well.

    >>> raise CPTuningError("train.csv is empty: give it at least two examples of two classes.")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: train.csv is empty: give it at least two examples of two classes.
    """
