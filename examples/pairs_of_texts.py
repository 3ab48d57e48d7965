"""Pairs of texts: whether two questions ask the same thing."""

from cptuning import CPTuningClassifier
from cptuning.data.sample_data import read_sample

train, test = read_sample("same_question_train"), read_sample("same_question_test")
classifier = CPTuningClassifier(preset="instant").fit(train.examples, train.labels)
print(f"accuracy on new pairs: {classifier.score(test.examples, test.labels):.1%}")

pair = ("How do I reset my password?", "What can I do if I forgot my password?")
[probabilities] = classifier.predict_proba([pair])
for label, probability in zip(classifier.classes_, probabilities, strict=True):
    print(f"{label}: {probability:.2f}")
