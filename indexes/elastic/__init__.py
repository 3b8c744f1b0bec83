"""Text and vector retrieval on Elasticsearch: client, mapping, bulk requests, and a circuit breaker."""
