from typing import Any


def draw(picture: bool, link: bool) -> dict[str, Any]:
    """Marked-up text.

    Args:
        picture: With a picture.
        link: With a link.
    """
    pieces = []
    if picture:
        pieces.append("**Our house**\n\n![house](https://example.com/house.png)")
    if link:
        pieces.append("[the way](https://example.com/way)")
    return {"text": "\n\n".join(pieces)}
