"""JSON Schemas of the documents that people write or read: generated from the models that read them, and shipped as files."""
