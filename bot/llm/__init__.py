"""Language models: the port, adapters for litellm and GGUF files, retries, and embeddings."""
