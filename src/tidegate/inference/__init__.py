"""Inner types shared by the server and the engine: what to generate, and what came out."""
