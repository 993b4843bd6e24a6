"""Offline evaluation: what each decoder would have chosen at every decision of recorded episodes."""
