"""Grammars: from what a caller asks for to the tokens that may come next. Begin reading at `matcher.py`, the ports.

Here are the ports, who serves them (`registry.py`), what is kept (`compile_cache.py`), and how JSON is spelled. The
folders build on each other, from `patterns` over `schema`, `lark` and `composite` to the backends.
"""
