"""Grounds: typed, frozen values that state why something is required, refused, chosen or changed; `words` spells them out."""
