"""llama.cpp as a backend: its forward pass and cache under our scheduler."""
