"""The recipe of the embedded backbone, from raw text to the weights in the package."""
