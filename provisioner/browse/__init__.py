"""Questions over a matrix: what there is, what goes with what, which stacks run on a host; and the site that shows it."""
