"""Whether a server with these settings would be open to more people than somebody has said. Pure: facts to findings.

`tidegate doctor` prints the findings; `tidegate serve` refuses to start at the first problem.
"""

from dataclasses import dataclass

from tidegate.cli.finding import Finding, ok, problem, warning
from tidegate.cli.settings import Settings

OLD_TOKEN_VARIABLE = "TIDEGATE_ADMIN_TOKEN"


@dataclass(frozen=True, slots=True)
class AccessFacts:
    """What was found. A fault is the reason why something cannot be read; None where it can, or is not there.

    `is_public` and `is_admin_public`: whether other machines may reach a listener. `num_keys` counts all keys,
    `num_active` those that let somebody in now.
    """

    is_public: bool = False
    is_admin_public: bool = False
    num_keys: int = 0
    num_active: int = 0
    keys_fault: str | None = None
    has_credential: bool = False
    credential_fault: str | None = None
    has_token_variable: bool = False


def check_access(facts: AccessFacts, settings: Settings) -> list[Finding]:
    """Returns what is to be said of the public listener, then of the admin listener."""
    return [*_check_public(facts, settings), *_check_admin(facts, settings)]


def _check_public(facts: AccessFacts, settings: Settings) -> list[Finding]:
    subject, host = "keys", settings.server.host
    if facts.keys_fault is not None:
        return [problem(subject, facts.keys_fault, "until it can be read, nobody can be told from anybody else")]
    if facts.num_keys:
        return _check_keys(facts, settings)
    if not facts.is_public:
        return [ok(subject, f"none: whoever reaches {host} may call", "`tidegate keys create NAME` makes the first")]
    if settings.auth.no_auth:
        found = f"none, and --no-auth is given: whoever reaches {host} may use the model"
        return [warning(subject, found, "make one when this was not meant: tidegate keys create NAME")]
    return [
        problem(
            subject,
            f"{host} is not loopback, and there is no key: whoever reaches it could use the model",
            "run `tidegate keys create NAME` first, or serve on 127.0.0.1, or say --no-auth",
        )
    ]


def _check_keys(facts: AccessFacts, settings: Settings) -> list[Finding]:
    count = f"{facts.num_keys}, {facts.num_active} of them active"
    if not facts.num_active:
        advice = "`tidegate keys create NAME` makes one"
        return [warning("keys", f"{count}: every request will be refused", advice)]
    if facts.is_public and settings.tls.certificate_file is None:
        found = f"{count}; on {settings.server.host} they travel in plain text"
        return [warning("keys", found, "set tls.certificate_file and tls.key_file, or put a proxy with TLS in front")]
    return [ok("keys", count)]


def _check_admin(facts: AccessFacts, settings: Settings) -> list[Finding]:
    subject, host = "admin", settings.server.admin_host
    if facts.credential_fault is not None:
        return [problem(subject, facts.credential_fault, "write one: (umask 077; openssl rand -hex 32 > admin-token)")]
    if facts.has_token_variable and not facts.has_credential:
        return [
            problem(
                subject,
                f"{OLD_TOKEN_VARIABLE} is set and means nothing: child processes and crash reports would show it",
                "write the credential into a file and name it in auth.admin_token_file",
            )
        ]
    if facts.has_credential:
        return [ok(subject, f"{host} asks for the credential of {settings.auth.admin_token_file}")]
    if facts.is_admin_public:
        return [
            problem(
                subject,
                f"the admin listener on {host} is not on loopback, and has no credential",
                "name a file with one in auth.admin_token_file, or set server.admin_host to 127.0.0.1",
            )
        ]
    return [ok(subject, f"no credential: whoever reaches {host} may look and operate")]
