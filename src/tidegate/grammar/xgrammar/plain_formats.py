"""Formats that other backends know by themselves, as patterns. Narrower than the standard where it says so."""

_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_HEX = "[0-9A-Fa-f]"
_GROUP = f"{_HEX}{{1,4}}"
_IPV4 = rf"{_BYTE}\.{_BYTE}\.{_BYTE}\.{_BYTE}"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?\^_`{|}~\-]{1,20}"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9]{0,20}-?[A-Za-z0-9]{1,20})?"
_PERCENT = f"%{_HEX}{{2}}"
_PATH = rf"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|{_PERCENT})"
_IPV6_ENDINGS = "|".join(f"(?:{_GROUP}:){{{before}}}(?::{_GROUP}){{1,{7 - before}}}" for before in range(1, 7))

FORMAT_PATTERNS = {
    "uuid": f"^{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}$",
    "ipv4": f"^{_IPV4}$",
    "ipv6": f"^(?:(?:{_GROUP}:){{7}}{_GROUP}|{_IPV6_ENDINGS}|::{_GROUP}(?::{_GROUP}){{0,6}}|(?:{_GROUP}:){{1,7}}:|::)$",
    "email": rf"^{_ATOM}(?:\.{_ATOM}){{0,2}}@{_LABEL}(?:\.{_LABEL}){{1,4}}$",
    "uri": rf"^[A-Za-z][A-Za-z0-9+.\-]*:(?://(?:{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,4}})?)?(?:/{_PATH}*)*|{_PATH}+)"
    rf"(?:\?(?:{_PATH}|[/?])*)?(?:#(?:{_PATH}|[/?])*)?$",
    "duration": r"^P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
    r"(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?"
    r"|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))$",
}
"""Lengths that would have to be counted are kept by shorter parts: before an e-mail's sign, and in labels."""
