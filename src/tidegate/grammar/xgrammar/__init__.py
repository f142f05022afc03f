"""xgrammar as a backend, and schemas in its EBNF. Begin at `xgrammar_compiler.py`."""
