from typing import Any


def take_payment(account_number: str) -> dict[str, Any]:
    """Pays the open balance. In this demo the payment service is always down.

    Args:
        account_number: Six digits.
    """
    return {"error": "the payment service does not answer", "account_number": account_number}
