"""The HTTP service: models by name, batches across requests, and answers that never pile up."""
