"""Several labels per text: lists of labels in, lists of labels out."""

from cptuning import CPTuningClassifier

reviews = [
    ("the songs are lovely", ["music"]),
    ("a beautiful soundtrack", ["music"]),
    ("she sings wonderfully", ["music"]),
    ("the actors are brilliant", ["acting"]),
    ("nobody in it can act", ["acting"]),
    ("what a performance by the lead actor", ["acting"]),
    ("great songs, and everybody can act", ["music", "acting"]),
    ("neither the score nor the cast is any good", ["music", "acting"]),
    ("it is far too long", []),
    ("I left after an hour", []),
]
texts, labels = zip(*reviews, strict=True)
classifier = CPTuningClassifier(preset="instant").fit(list(texts), list(labels))

new = ["the music is wonderful", "a film of two hours"]
for text, answer in zip(new, classifier.predict(new), strict=True):
    print(f"{text}: {', '.join(answer) or 'no label'}")
