def move_order(order: str) -> dict:
    return {"state": {"order": order, "step": "packed"}}
