"""Find wrong labels, duplicates and leaks between training and test data before training."""

import cptuning
from cptuning.data.sample_data import read_sample

train, test = read_sample("messages_train"), read_sample("messages_test")
texts, labels = list(train.examples), list(train.labels)

# Typical mistakes in real files: a label in the wrong row, and a text that occurs twice.
labels[0] = labels[-1]
texts.append(texts[5])
labels.append(labels[5])

print(cptuning.check(texts, labels, X_test=list(test.examples), y_test=list(test.labels)))
