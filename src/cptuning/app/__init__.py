"""The web page: from pasted examples to a classifier, without a line of code."""

import os

# Gradio reads it when it is imported, which is later: no analytics are sent.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "0"
