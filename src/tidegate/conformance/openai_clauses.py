"""Rules of the public OpenAI contract (OpenAPI document 2.3.0, the official Python client 3.57) and of the standards
below it. Name: (the rule in our words, where it is written).
"""

from collections.abc import Mapping

_SPEC = "OpenAI OpenAPI 2.3.0"
_CLIENT = "openai-python 3.57.0"

OPENAI: Mapping[str, tuple[str, str]] = {
    "http.closure": (
        "Who serves connections watches for their closing and reclaims what they held.",
        "RFC 9112, section 9.5",
    ),
    "http.unknown_header": ("Header fields that a recipient does not know are ignored.", "RFC 9110, section 5.1"),
}
