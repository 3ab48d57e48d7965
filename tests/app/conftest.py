"""A visitor's session on a tiny random backbone: it knows nothing, but quickly."""

import pytest

from cptuning.app.session import AppSettings, Session
from cptuning.app.user_examples import Example

GOOD = ("a wonderful film", "i loved every minute", "great acting, great fun", "what a joy")
BAD = ("a dull mess", "i hated every minute", "terrible acting, no fun", "what a bore")
FILMS = [Example(t, "good") for t in GOOD] + [Example(t, "bad") for t in BAD]
PAIRS = [
    Example(("is it red?", "it is red."), "yes"),
    Example(("is it big?", "it is big."), "yes"),
    Example(("is it red?", "the train leaves at ten."), "no"),
    Example(("is it big?", "nobody says so."), "no"),
]


@pytest.fixture(scope="session")
def settings(tiny):
    # The nearest example decides, so that what the model was shown gets its label, learned or not.
    return AppSettings(str(tiny("bert")), {"steps": 2, "inference": "knn", "k": 1})


@pytest.fixture
def session(settings):
    made = Session(settings)
    yield made
    made.close()


@pytest.fixture
def trained(session):
    session.add(FILMS)
    list(session.train().run())
    return session


@pytest.fixture
def trained_on_pairs(session):
    session.add(PAIRS)
    list(session.train().run())
    return session
