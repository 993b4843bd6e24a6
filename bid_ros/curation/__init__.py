"""Looks after recorded bags: lists, checks and edits them."""
