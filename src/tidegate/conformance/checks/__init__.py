"""Assertions that cases use: named functions of exchanges, each of which yields what is wrong."""
