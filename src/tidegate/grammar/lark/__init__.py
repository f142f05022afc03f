"""Lark grammars in llguidance's dialect, those of callers among them, and what llguidance allows and says of them."""
