"""Speculation by prompt lookup: guesses what follows from what stands in the text already. Pure."""
