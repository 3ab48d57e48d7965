"""The paper's experiments: what is run, how it is chosen and tested, and what is reported."""
