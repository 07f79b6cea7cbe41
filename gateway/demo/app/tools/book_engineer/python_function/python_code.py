import time
from typing import Any

BOOKING_SECONDS = 11


def book_engineer() -> dict[str, Any]:
    """Books the visit of an engineer. Works in the background."""
    time.sleep(BOOKING_SECONDS)
    set_variable("visit_time", "on Tuesday morning")
    return {"visit": "on Tuesday morning"}
