"""Puts load on any server of this API and says how it fares: `tidegate bench`.

What decides (arrivals, workloads, statistics, comparison, reports) is pure. Sockets and time are in `http_client.py`,
`ask.py`, `preflight.py` and `runner.py`. Imports nothing of the server or of its judge.
"""
