"""Text to events: what in the model's output is content, reasoning or a tool call. Knows no wire types."""
