"""What clients send and get: bodies, and the matching of documents to what a model expects."""
