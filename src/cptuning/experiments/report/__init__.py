"""The report on a result directory: its parts, its tables, and the formats of its files."""
