import time

def slow_tool(seconds: float = 0.05) -> dict:
    time.sleep(seconds)
    return {"state": "active"}
