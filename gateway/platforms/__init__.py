"""The platform's end of a call beyond its codec: socket, REST interface, operator's terms."""
