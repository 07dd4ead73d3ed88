"""What is wrong with an OpenAPI document itself: rules, and the places where each is broken."""
