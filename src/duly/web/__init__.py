"""HTTP: the API, health and what other parts add. Reads through inspect, acts through operate; knows no store."""
