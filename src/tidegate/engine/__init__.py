"""The boundary between server and engine: ports, messages, framing. Pure."""
