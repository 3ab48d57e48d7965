"""The web page: from pasted examples to a classifier, without a line of code."""

import os

# Read when Gradio is imported, which is later: nobody outside is told or asked anything.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "0"
