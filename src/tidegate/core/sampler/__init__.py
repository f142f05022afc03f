"""From logits to tokens: masks, penalties, narrowing, a counter-based draw, raw log-probabilities. Pure."""
