"""Durations and shares as text."""


def format_duration(seconds: float) -> str:
    """A duration in suitable units, rounded.

    >>> format_duration(0.3), format_duration(42.4), format_duration(260), format_duration(5000)
    ('1 s', '42 s', '4 min', '1 h 23 min')
    """
    if seconds < 99.5:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def format_percent(share: float) -> str:
    """A share in percent.

    >>> format_percent(0.125)
    '12.5 %'
    """
    return f"{100 * share:.1f} %"


def format_interval(low: float, high: float) -> str:
    """An interval of shares in percent.

    >>> format_interval(0.5, 0.75)
    '50.0 to 75.0 %'
    """
    return f"{100 * low:.1f} to {100 * high:.1f} %"
