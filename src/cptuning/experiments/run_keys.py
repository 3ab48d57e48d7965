"""The key of a run: a hash of its configuration that survives changes to the settings.

Records are found by their keys, so a key must not change when a setting is renamed or a new one is
added. A configuration is therefore hashed in its *first form*: with the names and values that its
settings had when the first results were published, and without later settings that are neutral.
Whoever renames or adds a setting appends one line to ``CHANGES``; a setting whose value changes
makes another run, with another key.
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

Values = dict[str, Any]


class SettingsChange(Protocol):
    """A change to the settings that does not change what a run does."""

    def apply(self, settings: Values) -> Values:
        """Bring settings from before the change up to date; leave later ones as they are."""

    def undo(self, settings: Values) -> Values:
        """Write settings from after the change as they were written before it."""


@dataclass(frozen=True)
class RenamedSetting:
    """A setting has a new name."""

    before: str
    after: str

    def apply(self, settings: Values) -> Values:
        """Use the new name."""
        return {self.after if name == self.before else name: v for name, v in settings.items()}

    def undo(self, settings: Values) -> Values:
        """Use the old name."""
        return RenamedSetting(self.after, self.before).apply(settings)


@dataclass(frozen=True)
class RenamedValue:
    """One of the values that a setting can have has a new name."""

    setting: str
    before: str
    after: str

    def apply(self, settings: Values) -> Values:
        """Use the new value."""
        is_old = settings.get(self.setting) == self.before
        return settings | {self.setting: self.after} if is_old else settings

    def undo(self, settings: Values) -> Values:
        """Use the old value."""
        return RenamedValue(self.setting, self.after, self.before).apply(settings)


@dataclass(frozen=True)
class AddedSetting:
    """There is a new setting; with its neutral value, a run does what it did before.

    The neutral value need not be the default. A record from before the change does not have the
    setting, because not every method does.
    """

    setting: str
    neutral: Any

    def apply(self, settings: Values) -> Values:
        """Leave them as they are."""
        return settings

    def undo(self, settings: Values) -> Values:
        """Leave the setting out if it is neutral."""
        if self.setting not in settings or settings[self.setting] != self.neutral:
            return settings
        return {name: value for name, value in settings.items() if name != self.setting}


# All changes since the first results were published, the oldest first.
CHANGES: tuple[SettingsChange, ...] = (
    RenamedSetting("words_a_class", "words_per_class"),
    RenamedValue("selection", "one-error", "one-standard-error"),
    AddedSetting("pooling", neutral="auto"),  # of a masked LM, the vector at [OMSK] as before
    AddedSetting("sentence_weight", neutral=0.0),
    AddedSetting("instant_first", neutral=False),
    AddedSetting("most_steps", neutral=1000),
    AddedSetting("long_texts", neutral="truncate"),
    AddedSetting("most_windows", neutral=32),  # It means nothing where texts are truncated.
    AddedSetting("description_weight", neutral=None),
)


def key_of(configuration: dict[str, Any]) -> str:
    """The hash of a configuration in its first form; the order of its entries does not matter.

    >>> key_of({"seed": 13, "settings": {"k": 3}}) == key_of({"settings": {"k": 3}, "seed": 13})
    True
    """
    first = configuration | {"settings": first_form(configuration["settings"])}
    text = json.dumps(first, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode("utf-8")).hexdigest()[:32]


def first_form(settings: Values) -> Values:
    """Today's settings as they were called in the first published results.

    >>> first_form({"words_per_class": 50, "selection": "one-standard-error"})
    {'words_a_class': 50, 'selection': 'one-error'}
    """
    for change in reversed(CHANGES):
        settings = change.undo(settings)
    return settings


def current_form(settings: Values) -> Values:
    """The settings of a record, however old, as they are called today.

    >>> current_form({"words_a_class": 50, "selection": "one-error"})
    {'words_per_class': 50, 'selection': 'one-standard-error'}
    """
    for change in CHANGES:
        settings = change.apply(settings)
    return settings
