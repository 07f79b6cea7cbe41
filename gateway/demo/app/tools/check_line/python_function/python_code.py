import time
from typing import Any

TEST_SECONDS = 8


def check_line() -> dict[str, Any]:
    """Tests the line to the caller's house. Takes several seconds."""
    time.sleep(TEST_SECONDS)
    return {"fault": "a broken cable", "back": "at four o'clock"}
