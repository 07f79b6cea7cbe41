def async_tool() -> dict:
    return {"order": "sent"}
