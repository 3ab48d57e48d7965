"""Work on several machines through Ray."""
