"""Answer questions about a matrix: its rows, compatible releases, the stacks of a host; and generate the site."""
