"""Reading of project pages, and selection of the file of each release that an installer would choose on the target."""
