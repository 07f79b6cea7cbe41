def remember_caller(name: str) -> None:
    """Remembers the caller's name."""
    set_variable("caller", name)
