"""The methods: CP-Tuning, its settings and how it is fitted."""
