"""How files are written: whole or not at all, one process at a time, one line after another."""
