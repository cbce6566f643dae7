"""HTTP requests to package indexes and image registries: credentials, the pooled session, and the transport."""
