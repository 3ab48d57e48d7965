"""The commands, one module each; what they share is in console, options and tables."""
