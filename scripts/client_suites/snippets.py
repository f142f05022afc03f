"""The snippets of docs/clients.md, run as they stand but for the address and the model."""

import re
from dataclasses import dataclass

PAGE_URL = "http://127.0.0.1:8000/v1"
PAGE_MODEL = "SmolLM2-135M-Instruct"
SNIPPET = re.compile(r"^### (?P<client>\S+)\n\n```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
ENDINGS = {"python": ".py", "sh": ".sh", "js": ".mjs"}


@dataclass(frozen=True)
class Snippet:
    """`ending`: of the file that it makes."""

    ending: str
    text: str


def snippets_of(page: str, url: str, model: str) -> dict[str, Snippet]:
    """Returns the snippet of each client, aimed at a server. Raises KeyError for a language that cannot be run."""
    return {
        found["client"]: Snippet(
            ENDINGS[found["language"]], found["text"].replace(PAGE_URL, url).replace(PAGE_MODEL, model)
        )
        for found in SNIPPET.finditer(page)
    }
