from typing import Any


def submit_meter_reading(account_number: str) -> dict[str, Any]:
    """Stores a meter reading. In this demo the meter service is always down.

    Args:
        account_number: Six digits.
    """
    raise ConnectionError("the meter service does not answer")
