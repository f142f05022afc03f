"""Whether the program that runs here may be imported a second time: vLLM starts its engine process by spawning.

The spawned process imports the module that is `__main__` here under another name. A program that does its work at the
top of that module, and not behind `if __name__ == "__main__"`, would start another server there, or die with words
that name neither the cause nor the cure. So its source is looked at before anything is spawned. Pure.
"""

import ast

_HARMLESS = (
    *(ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass),
)


def unguarded_line(source: str) -> int | None:
    """Returns the line of the first statement that would do work in the spawned process; None where none would.

    Imports, definitions and assignments are taken as harmless; text that is not Python as nothing.
    """
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    return next((statement.lineno for statement in module.body if not _is_harmless(statement)), None)


def _is_harmless(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.If):
        there = () if _asks_for_main(statement.test) else statement.body
        return all(map(_is_harmless, (*there, *statement.orelse)))
    if isinstance(statement, ast.Try):
        parts = (*statement.body, *statement.orelse, *statement.finalbody)
        handlers = (inner for handler in statement.handlers for inner in handler.body)
        return all(map(_is_harmless, (*parts, *handlers)))
    return isinstance(statement, _HARMLESS)


def _asks_for_main(test: ast.expr) -> bool:
    """`__name__ == "__main__"`, also with more conditions behind `and`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(_asks_for_main, test.values))
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    has_name = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    return has_name and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
