"""What llguidance may spend on one grammar: its own limits, lowered.

What they refuse is refused in a fraction of a second and not after several.
"""

import llguidance

LEXER_FUEL = 200_000
"""Work on the regular expressions of one grammar, in llguidance's unit: about 50,000 a millisecond, it says."""

MAX_LEXER_STATES = 50_000
"""States of one grammar's lexer, 1 to 2 KiB each."""

MAX_STEP_ITEMS = 6_000
"""Items of the parser that one mask may take, within one row of it `MAX_ROW_ITEMS`: grammars that can read a text in
many ways reach it. Its error ends the sequence. Schemas do not: `lowered_bounds.MAX_PROPERTIES` comes first.
"""

MAX_ROW_ITEMS = 1_500

STEP_FUEL = 100_000
"""Work on regular expressions for one mask."""

LIMITS = llguidance.LLParserLimits(
    initial_lexer_fuel=LEXER_FUEL,
    max_lexer_states=MAX_LEXER_STATES,
    max_items_in_row=MAX_ROW_ITEMS,
    step_max_items=MAX_STEP_ITEMS,
    step_lexer_fuel=STEP_FUEL,
    verbose_errors=False,
)
