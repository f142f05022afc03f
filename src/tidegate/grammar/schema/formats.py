"""Formats: which are enforced, and how.

Drafts take `format` as a remark. Here those that the standard names are enforced, exactly or more strictly, or else
refused; those that it does not name (`byte`, `int64`, `path`, ...) have no meaning that could be kept, and are remarks.
More strictly: leap seconds are written at 23:59:60 UTC only, host names without `--` in third place (no A-labels, whose
validity is not regular), e-mail addresses without quotes, IPv6 addresses without an IPv4 tail.
"""

_DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_TIME = (
    r"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
    r"|23:59:60(?:\.[0-9]+)?(?:[Zz]|[+-]00:00))"
)
_LABEL = (
    r"[A-Za-z0-9](?:[A-Za-z0-9]|[A-Za-z0-9-]{1,2}[A-Za-z0-9]"
    r"|[A-Za-z0-9-](?:[A-Za-z0-9][A-Za-z0-9-]|-[A-Za-z0-9])[A-Za-z0-9-]{0,58}[A-Za-z0-9])?"
)
_POINTER = r"(?:/(?:[^/~]|~[01])*)*"
_HEX = "%[0-9A-Fa-f]{2}"
_NAME = rf"(?:[A-Za-z0-9_]|{_HEX})(?:\.?(?:[A-Za-z0-9_]|{_HEX}))*(?::[1-9][0-9]{{0,3}}|\*)?"
_TEMPLATE = rf"(?:[^\x00-\x20\x7f\x22'%<>\\^`{{|}}]|{_HEX}|\{{[+#./;?&=,!@|]?{_NAME}(?:,{_NAME})*\}})*"

PATTERNS = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}[Tt]{_TIME}$",
    "hostname": rf"^{_LABEL}(?:\.{_LABEL})*$",
    "json-pointer": f"^{_POINTER}$",
    "relative-json-pointer": f"^(?:0|[1-9][0-9]*)(?:#|{_POINTER})$",
    "uri-template": f"^{_TEMPLATE}$",
}
"""In the backend's words."""

LENGTHS = {"hostname": 253}

LOCAL_PART = "^[^@]{1,64}@"
"""What the backend's `email` leaves open: the length of the part before the sign."""

OF_BACKEND = frozenset(("duration", "email", "ipv4", "ipv6", "uuid", "uri"))

ENFORCED_FORMATS = frozenset(PATTERNS) | OF_BACKEND

REFUSED_FORMATS = frozenset(("idn-email", "idn-hostname", "iri", "iri-reference", "uri-reference", "regex"))
