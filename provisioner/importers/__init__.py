"""Importers: read what people have today (requirement files, projects, conda, cog, Dockerfiles) as the content of a spec."""
