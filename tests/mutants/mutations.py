"""Small changes to a module, each of which a test should notice: mutants.

Operators, comparisons, constants, truth values, ends of ranges. Left alone are texts, type
annotations and whatever only words an error.
"""

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_TOLERANCE = 1e-6
_PAIRS = (
    *(("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("nanmin", "nanmax")),
    *(("any", "all"), ("floor", "ceil"), ("logical_and", "logical_or"), ("cumsum", "cumprod")),
)
_SWAPPED = {**dict(_PAIRS), **{other: name for name, other in _PAIRS}}


@dataclass(frozen=True)
class Mutation:
    """One change. ``module``: the path of the file inside the package; ``function``: the dotted
    name of what it is in; ``start`` and ``end``: offsets into the source, in bytes; ``occurrence``:
    which one it is among the same changes in this function, from 1 on."""

    module: str
    function: str
    line: int
    before: str
    after: str
    start: int
    end: int
    occurrence: int = 1

    def apply(self, source: str) -> str:
        data = source.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()

    @property
    def key(self) -> str:
        """What identifies the change as long as the function around it stays the same."""
        text = "\n".join((self.module, self.function, str(self.line), self.before, self.after))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def mutations(module: str, source: str, left_out: frozenset[str] = frozenset()) -> list[Mutation]:
    """All changes of a module, in the order of its lines.

    ``left_out``: names of module constants whose values steer speed alone.
    """
    tree = ast.parse(source)
    starts = [0]
    for text in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    found = []
    for function, node in _nodes(tree, (), left_out):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = source.encode()[start:end].decode()
        for changed in _changes(node):
            after = ast.unparse(changed)
            if not isinstance(changed, ast.Constant | ast.Name | ast.Attribute):
                after = f"({after})"
            found.append(Mutation(module, function, node.lineno, before, after, start, end))
    alike: Counter[tuple[str, ...]] = Counter()
    counted = []
    for one in sorted(found, key=lambda one: (one.start, one.end, one.after)):
        change = (one.function, one.before, one.after)
        alike[change] += 1
        counted.append(replace(one, occurrence=alike[change]))
    return counted


def _nodes(
    node: ast.AST, place: tuple[str, ...], left_out: frozenset[str]
) -> Iterator[tuple[str, ast.expr]]:
    """The expressions that may be changed, each with the function that it is in."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.Assign | ast.AnnAssign) and not place:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id in left_out for target in targets):
            return
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        place = (*place, node.name)
    if isinstance(node, ast.expr):
        yield ".".join(place) or "module", node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_type(child):
                yield from _nodes(child, place, left_out)


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare():
            for i, operator in enumerate(node.ops):
                for other in _COMPARISONS.get(type(operator), ()):
                    changed = copy.deepcopy(node)
                    changed.ops[i] = other()
                    yield changed
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            changed = copy.deepcopy(node)
            changed.op = _ARITHMETIC[type(node.op)]()
            yield changed
        case ast.BoolOp():
            changed = copy.deepcopy(node)
            changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield changed
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield copy.deepcopy(operand)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
            if value == 0 or abs(value) > _TOLERANCE:  # twice a tolerance is a tolerance, too
                yield ast.Constant(value * 2 if value else -1)
        case ast.Name() if node.id in _SWAPPED and isinstance(node.ctx, ast.Load):
            yield ast.Name(_SWAPPED[node.id])
        case ast.Attribute() if node.attr in _SWAPPED and isinstance(node.ctx, ast.Load):
            yield ast.Attribute(copy.deepcopy(node.value), _SWAPPED[node.attr])
        case ast.Subscript(slice=ast.Slice() as part):
            for field in ("lower", "upper"):
                end = getattr(part, field)
                if end is not None and not isinstance(end, ast.Constant):
                    changed = copy.deepcopy(node)
                    moved = ast.BinOp(copy.deepcopy(end), ast.Add(), ast.Constant(1))
                    setattr(changed.slice, field, moved)
                    yield changed


def _is_type(node: ast.AST) -> bool:
    """Whether an expression is a union of types, as in ``isinstance(value, int | float)``."""
    match node:
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _names_type(left) and _names_type(right)
        case ast.Subscript(value=value):  # Mapping[str, float], npt.NDArray[np.float64]
            return _names_type(value) and isinstance(value, ast.Name | ast.Attribute)
    return False


def _names_type(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            builtin = name in ("int", "float", "str", "bool", "list", "dict", "tuple", "bytes")
            builtin |= name in (
                "integer",
                "floating",
                "number",
                "generic",
                "ndarray",
                "timedelta64",
            )
            return builtin or name.endswith("_") or (name[0].isupper() and not name.isupper())
        case ast.Constant(value=None):
            return True
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _names_type(left) and _names_type(right)
        case ast.Subscript(value=value):
            return _names_type(value)
    return False
