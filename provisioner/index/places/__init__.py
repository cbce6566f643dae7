"""Where files are besides the one index that answers for a name: folders, addresses, other indexes."""
