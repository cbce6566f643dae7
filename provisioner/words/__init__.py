"""Grounds -> English: the only part that words reasons. Nothing reads these sentences back."""
