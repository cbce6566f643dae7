"""The jobs of the program as pure steps over values, between the command line and the parts; the public Python API."""
