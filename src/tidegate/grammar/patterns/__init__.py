"""Regular expressions: as ECMA-262 means them, as trees, as sets of characters, in EBNF. Begin at `ecma_pattern.py`."""
