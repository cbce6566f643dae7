"""Input 3: the spec, that is the requirements of the user (`provision.yaml`)."""
