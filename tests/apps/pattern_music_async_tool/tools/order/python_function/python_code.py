import time


def order(item: str) -> dict:
    time.sleep(get_variable("takes_s"))
    return {"item": item, "number": 31}
