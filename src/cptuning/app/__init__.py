"""The web page: from pasted examples to a classifier, without a line of code."""
