"""Grammars of parts: schemas, texts and Lark grammars within the notations of model families.

Begin at `composite_grammar.py`.
"""
