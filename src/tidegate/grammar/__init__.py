"""Grammars: from what a caller asks for to the tokens that may come next. Begin reading at `matcher.py`."""
