"""Grounds: typed, frozen values that say why something is required, refused, chosen or changed; `words` spells them."""
