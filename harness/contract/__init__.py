"""What a target promises: OpenAPI documents and vendor profiles, compiled into validators."""
