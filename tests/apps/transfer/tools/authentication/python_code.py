def authentication() -> dict:
    return {"error": "wrong pin"}
