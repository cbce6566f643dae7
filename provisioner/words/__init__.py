"""Grounds -> English: the only package that phrases reasons; no code parses its sentences."""
