"""The first call of a torch operation can take long: time limits on examples would only flicker."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
