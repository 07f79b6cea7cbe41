import time


def activate(card: str) -> dict:
    time.sleep(get_variable("takes_s"))
    return {"card": card, "active": True}
