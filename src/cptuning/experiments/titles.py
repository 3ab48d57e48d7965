"""The names of methods and rows as a paper prints them."""

_TITLES = {
    "fine-tuning": "Fine-tuning",
    "pet": "PET",
    # The backbone itself fills in the templates, not a T5 as in the paper: hence names of our own.
    "lm-bff-t": "LM-BFF (Auto-T, MLM)",
    "lm-bff-l": "LM-BFF (Auto-L)",
    "lm-bff-tl": "LM-BFF (Auto-T+L, MLM)",
    "p-tuning": "P-tuning",
    "warp": "WARP",
    "cp-tuning": "CP-Tuning",
    "zero-shot": "PET, zero-shot",
    "warp-random": "WARP, random class vectors",
    "cp-tuning-released": "CP-Tuning, as released",
}


def title_of(row: str) -> str:
    """The title of a row whose name begins with a method, or is one; other names stay.

    >>> title_of("pet, uniform batches"), title_of("without MLM")
    ('PET, uniform batches', 'without MLM')
    """
    method, comma, rest = row.partition(", ")
    return _TITLES.get(method, method) + comma + rest
