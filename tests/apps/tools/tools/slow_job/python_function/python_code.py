import time

def slow_job(seconds: float) -> dict:
    time.sleep(seconds)
    return {"done": True}
