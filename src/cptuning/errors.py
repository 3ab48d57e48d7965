"""The exception for errors that the user can fix."""


class CPTuningError(ValueError):
    """What is wrong, where, and what to do, in one sentence, which the command prints.

    It is a ``ValueError``, so code written for scikit-learn catches it as well.

    >>> raise CPTuningError("train.csv is empty: give it at least two examples of two classes.")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: train.csv is empty: give it at least two examples of two classes.
    """
