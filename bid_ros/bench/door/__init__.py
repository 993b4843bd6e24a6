"""Adroit's door: a hand with 24 joints opens it."""
