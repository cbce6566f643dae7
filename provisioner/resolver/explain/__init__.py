"""No answer -> a minimal conflict in words, and changes that were carried out and solved again."""
