"""The preset instant on the embedded backbone: the same model as with torch, without it."""
