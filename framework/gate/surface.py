"""What a Python module defines, without what its functions do.

A module of which no function was started can matter to a run by what it defines and by what its own code does, and by
nothing else. A function with a decorator is kept whole: a decorator may read its source, or call it.
"""

from __future__ import annotations

import ast
import hashlib


def surface(source: bytes) -> str:
    """Return what tells a module's definitions; for a source that cannot be read, what tells all of it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"whole {hashlib.sha256(source).hexdigest()}"
    _Emptied().visit(tree)
    return f"definitions {hashlib.sha256(ast.dump(tree).encode('utf-8', 'surrogatepass')).hexdigest()}"


class _Emptied(ast.NodeTransformer):
    """Takes the bodies out of functions without a decorator."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Empty a function."""
        if not node.decorator_list:
            node.body = []
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        """Empty a coroutine."""
        if not node.decorator_list:
            node.body = []
        return node
