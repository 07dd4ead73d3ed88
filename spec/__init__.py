"""What is promised: OpenAPI documents, vendor profiles and our own JSON Schemas. Data, no code."""
