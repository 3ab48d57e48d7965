"""The HTTP service: models by name, batching across requests, bounded queues."""
