def look_up(key: str) -> dict:
    """Find a thing."""
    return {"found": key}
