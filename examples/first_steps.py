"""A classifier from six examples, without training: predict, explain, a new class, save."""

from pathlib import Path
from tempfile import TemporaryDirectory

import cptuning

texts = [
    "where is my parcel?",
    "my order has not arrived yet",
    "the tracking page shows no delivery date",
    "I want my money back",
    "please refund the second payment",
    "how do I return these shoes for a refund?",
]
labels = ["delivery"] * 3 + ["refund"] * 3

classifier = cptuning.CPTuningClassifier(preset="instant")
classifier.fit(texts, labels)
print(classifier.predict(["when will my package come?"]))
print(classifier.explain(["when will my package come?"], k=2))

classifier.add_examples(["the app won't let me log in"], ["account"])
print(classifier.predict(["I can't log in"]))

with TemporaryDirectory() as folder:
    classifier.save(Path(folder, "model"))
    print(cptuning.load(Path(folder, "model")).classes_)
