"""The one thread of a model: what is read together, in which order, and what is refused."""

from threading import Event

import numpy as np
import pytest
from tests.serving.client import PATIENCE, wait_until

from cptuning.data import Examples, LabelSpace
from cptuning.inference import Evidence, Reasons
from cptuning.inference.predictor import Answered
from cptuning.serving.api_errors import ApiError
from cptuning.serving.batch_worker import BatchWorker
from cptuning.serving.limits import Limits


class Lengths:
    """A predictor that says how long texts are."""

    label_space = LabelSpace(("short", "long"))

    def explained(self, examples, answered, k):
        evidence = [Evidence("like it", "short", float(row[0])) for row in answered.embeddings]
        return [Reasons([one] * k) for one in evidence]


class FakeModel:
    """A model that can be held, and remembers what it was asked."""

    folder = "a folder"
    predictor = Lengths()

    def __init__(self, held=False):
        self.go = Event()
        if not held:
            self.go.set()
        self.began = Event()
        self.batches = []
        self.caught_up = False

    def predict(self, examples):
        self.began.set()
        assert self.go.wait(PATIENCE)
        self.batches.append(list(examples))
        if "poison" in examples.first:
            raise RuntimeError("poisoned")
        lengths = np.array([[len(text)] for text in examples], dtype=np.float32)
        return Answered(np.array(list(examples)), lengths, lengths)

    def add_examples(self, examples, labels):
        self.batches.append(("learn", list(examples), labels))
        return "learned"

    def catch_up(self):
        self.caught_up = True


@pytest.fixture
def begin():
    """Starts workers that end with the test."""
    workers = []

    def worker(model, predecessor=None, **limits):
        workers.append(BatchWorker(model, Limits(**limits), lambda rows: None, predecessor))
        return workers[-1]

    yield worker
    for worker in workers:
        worker.drain()
        worker.model.go.set()
        worker.join(PATIENCE)


def hold(worker):
    """Let the worker have one request in its hands."""
    first = worker.predict(Examples(("first",)))
    assert worker.model.began.wait(PATIENCE)
    return first


def texts_of(future):
    return future.result(PATIENCE).answered.labels.tolist()


def test_what_waits_is_read_together_and_each_gets_its_own(begin):
    worker = begin(FakeModel(held=True))
    hold(worker)
    futures = [worker.predict(Examples((f"text {i}", "x" * i))) for i in range(3)]
    worker.model.go.set()
    assert [texts_of(f) for f in futures] == [[f"text {i}", "x" * i] for i in range(3)]
    assert worker.model.batches[1] == ["text 0", "", "text 1", "x", "text 2", "xx"]


def test_a_batch_has_no_more_rows_than_allowed_but_a_request_stays_whole(begin):
    worker = begin(FakeModel(held=True), batch_rows=4)
    hold(worker)
    futures = [worker.predict(Examples(("a",) * n)) for n in (3, 1, 1, 9, 2)]
    worker.model.go.set()
    for future in futures:
        future.result(PATIENCE)
    assert list(map(len, worker.model.batches)) == [1, 4, 1, 9, 2]


def test_one_request_is_enough_for_a_batch(begin):
    assert texts_of(begin(FakeModel(), batch_wait=0).predict(Examples(("alone",)))) == ["alone"]


def test_a_request_waits_a_little_for_others(begin):
    worker = begin(FakeModel(), batch_wait=PATIENCE, batch_rows=2)
    futures = [worker.predict(Examples((text,))) for text in ("a", "b")]
    assert [texts_of(f) for f in futures] == [["a"], ["b"]]
    assert worker.model.batches == [["a", "b"]]


def test_learning_keeps_its_place_among_the_requests(begin):
    worker = begin(FakeModel(held=True))
    hold(worker)
    before = worker.predict(Examples(("before",)))
    learned = worker.add_examples(Examples(("new",)), ["label"])
    after = worker.predict(Examples(("after",)))
    worker.model.go.set()
    assert (texts_of(before), texts_of(after)) == (["before"], ["after"])
    assert learned.result(PATIENCE) == "learned"
    assert worker.model.batches[1:] == [["before"], ("learn", ["new"], ["label"]), ["after"]]


def test_more_than_can_wait_is_refused_at_once_with_the_time_to_come_back(begin):
    worker = begin(FakeModel(held=True), queue_rows=4)
    hold(worker)
    accepted = [worker.predict(Examples(("a", "b"))) for _ in range(2)]
    for _ in range(3):
        with pytest.raises(ApiError, match="try again in") as caught:
            worker.predict(Examples(("c",)))
        assert caught.value.status == 429
        assert int(caught.value.headers["Retry-After"]) >= 1
    assert worker.queued_rows == 4
    worker.model.go.set()
    assert [texts_of(f) for f in accepted] == [["a", "b"]] * 2
    assert texts_of(worker.predict(Examples(("d",)))) == ["d"]
    assert worker.queued_rows == 0


def test_what_would_be_answered_too_late_is_refused_as_well(begin):
    worker = begin(FakeModel(held=True), seconds=0.001)
    hold(worker)
    worker.predict(Examples(("a",)))
    with pytest.raises(ApiError, match="try again in"):
        worker.predict(Examples(("b",)))


def test_a_request_larger_than_the_queue_is_taken_when_nothing_waits(begin):
    assert len(texts_of(begin(FakeModel(), queue_rows=4).predict(Examples(("a",) * 9)))) == 9


def test_a_request_that_fails_does_not_take_its_neighbours_along(begin):
    worker = begin(FakeModel(held=True))
    hold(worker)
    good, bad, fine = (worker.predict(Examples((text,))) for text in ("good", "poison", "fine"))
    worker.model.go.set()
    assert (texts_of(good), texts_of(fine)) == (["good"], ["fine"])
    with pytest.raises(RuntimeError, match="poisoned"):
        bad.result(PATIENCE)
    assert worker.is_alive


def test_what_nobody_waits_for_any_more_is_not_read(begin):
    worker = begin(FakeModel(held=True))
    hold(worker)
    given_up, wanted = (
        worker.predict(Examples(("given up",))),
        worker.predict(Examples(("wanted",))),
    )
    assert given_up.cancel()
    worker.model.go.set()
    assert texts_of(wanted) == ["wanted"]
    assert worker.model.batches == [["first"], ["wanted"]]
    wait_until(lambda: worker.queued_rows == 0)


def test_neighbours_are_for_those_who_ask(begin):
    worker = begin(FakeModel())
    with_them = worker.predict(Examples(("abc", "de")), neighbours=2).result(PATIENCE)
    assert [[e.similarity for e in row] for row in with_them.reasons] == [[3, 3], [2, 2]]
    assert worker.predict(Examples(("abc",))).result(PATIENCE).reasons is None


def test_a_retired_worker_finishes_what_it_accepted_and_takes_no_more(begin):
    worker = begin(FakeModel(held=True))
    first = hold(worker)
    accepted = worker.predict(Examples(("accepted",)))
    worker.drain()
    with pytest.raises(ApiError, match="shutting down"):
        worker.predict(Examples(("late",)))
    worker.model.go.set()
    assert (texts_of(first), texts_of(accepted)) == (["first"], ["accepted"])
    worker.join(PATIENCE)
    assert not worker.is_alive


def test_a_successor_begins_when_all_before_it_is_done_and_knows_what_was_learned(begin):
    old = begin(FakeModel(held=True))
    first = hold(old)
    learned = old.add_examples(Examples(("new",)), ["label"])
    new = begin(FakeModel(), predecessor=old)
    later = new.predict(Examples(("later",)))
    assert not new.model.caught_up
    assert not later.done()
    old.model.go.set()
    assert texts_of(first) == ["first"]
    assert learned.result(PATIENCE) == "learned"
    assert texts_of(later) == ["later"]
    assert new.model.caught_up
