def cancel_order(order: str) -> dict:
    return {"cancelled": order}
