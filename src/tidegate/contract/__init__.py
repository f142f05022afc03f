"""Outer wire types: what clients send and receive. Struct definitions, the codec, and the one error table."""
