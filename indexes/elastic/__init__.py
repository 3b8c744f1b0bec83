"""The same search on Elasticsearch: client, mapping, bulk requests, and a circuit breaker."""
