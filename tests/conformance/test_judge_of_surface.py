"""Each case about routes, headers, credentials and errors holds on a right server, and catches its mutants."""

from harness.judged_case import judged
from mutants import auth, errors, headers, models, routes

(
    servers,
    test_the_case_holds_on_a_right_server,
    test_the_case_catches_its_mutant,
    test_each_case_has_a_mutant,
) = judged(
    ("routes", "models", "errors", "auth", "headers"),
    routes.MUTANTS,
    models.MUTANTS,
    errors.MUTANTS,
    auth.MUTANTS,
    headers.MUTANTS,
    bases=dict.fromkeys(auth.MUTANTS, "keyed"),
)
