"""Language models: networks to time, time of tokens, equality of logits."""
