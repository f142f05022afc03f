"""The judge: what any server of this API owes its callers, asked over HTTP. Shares no code with the server."""
