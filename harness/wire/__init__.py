"""What travels over the wire, kept whole: exchanges, HTTP, server-sent events, JSON. Sans-I/O but for `recorder` and `fetch`."""
