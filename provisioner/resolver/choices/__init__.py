"""The candidates of every component, in order of preference, and what restricts them: hosts, constraints, hashes, overrides."""
