def sign_in(name: str) -> dict:
    raise ConnectionError("the directory is down")
