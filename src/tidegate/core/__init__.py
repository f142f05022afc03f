"""The engine's thinking: sequences, blocks, steps. Pure except through `Backend`; knows no text and no sockets."""
