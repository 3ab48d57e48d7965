"""Wrong labels, repeats and leaks between training and test data, found before training."""

import cptuning
from cptuning.data.sample_data import read_sample

train, test = read_sample("messages_train"), read_sample("messages_test")
texts, labels = list(train.examples), list(train.labels)

# What goes wrong in every real file: a label that slipped, and a text that is there twice.
labels[0] = labels[-1]
texts.append(texts[5])
labels.append(labels[5])

print(cptuning.check(texts, labels, X_test=list(test.examples), y_test=list(test.labels)))
