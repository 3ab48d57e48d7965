"""The instant preset compared with a short training, on customer messages of the package."""

from cptuning import CPTuningClassifier
from cptuning.data.sample_data import read_sample

train, test = read_sample("messages_train"), read_sample("messages_test")
texts, labels = list(train.examples), list(train.labels)

instant = CPTuningClassifier(preset="instant").fit(texts, labels)
print(f"instant: held-out accuracy {instant.held_out_score_:.1%}")
print(f"         on new messages   {instant.score(test.examples, test.labels):.1%}")

# steps=2 keeps this example short; leave it out to train as the default preset does.
trained = CPTuningClassifier(steps=2, validation="none", random_state=0).fit(texts, labels)
print(f"trained: on new messages   {trained.score(test.examples, test.labels):.1%}")
