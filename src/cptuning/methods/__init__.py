"""The methods: CP-Tuning and its rivals, their settings, and how all are fitted."""
