"""Input 2: the facts of a machine, from host profiles, inventories of many hosts, or inspection."""
