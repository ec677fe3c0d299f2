"""Where model servers are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from selector.errors import InvalidConfig


def server_urls(base_url: str | Sequence[str]) -> list[str]:
    """Return the addresses of servers in a text with commas or spaces between them, or in a sequence of such texts.

    Raises InvalidConfig for what is no http address, is there twice, or has a password in it.
    """
    texts = [base_url] if isinstance(base_url, str) else base_url
    urls = [url.rstrip("/") for text in texts for url in re.split(r"[\s,]+", text) if url]
    if not urls:
        raise InvalidConfig("base_url", base_url, "the address of a server, such as http://127.0.0.1:8000/v1")
    for url in urls:
        parts = urlsplit(url)
        if parts.username or parts.password:
            raise InvalidConfig("base_url", f"…@{parts.hostname}", "without user or password; give a key (api_key_env)")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidConfig("base_url", url, "an address that starts with http:// or https://, or several of them")
        if urls.count(url) > 1:
            raise InvalidConfig("base_url", url, "there once; each address is one server")
    return urls
