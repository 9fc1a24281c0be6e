"""What a handler takes: its parameters, their types, and whether a `Job` comes first.

Annotations are read at the first use, not when the handler is declared: until then its module may be half imported.
"""

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from duly.core.errors import UsageError

_UNKNOWN: Final = object()
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Taken(NamedTuple):
    """What was found when the annotations were read."""

    takes_job: bool
    types: dict[str, Any]
    """Parameter -> type, without the job; Any where there is no annotation."""
    required: frozenset[str]
    positional: int
    """How many of the parameters may be given by position."""


@dataclass(frozen=True, slots=True)
class HandlerSignature:
    """A handler's parameters before their annotations are read."""

    fn: Callable[..., object]
    job_type: type
    signature: inspect.Signature

    @classmethod
    def of(cls, fn: Callable[..., object], job_type: type) -> "HandlerSignature":
        """Read a handler's parameters; raise UsageError where none of its calls could be stored."""
        try:
            signature = inspect.signature(fn)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"{fn!r:.80} has no signature that can be read; wrap it in a function of yours"
            ) from error
        found = cls(fn, job_type, signature)
        found._refuse_open_ends()
        found._refuse_misplaced_job(certain=True)
        return found

    @property
    def name(self) -> str:
        """Return the handler's name for messages."""
        return str(getattr(self.fn, "__qualname__", repr(self.fn))).rpartition("<locals>.")[2]

    def read(self) -> Taken:
        """Read the annotations; raise UsageError with the parameter that cannot be read, and why."""
        self._refuse_misplaced_job(certain=False)
        parameters = list(self.signature.parameters.values())
        takes_job = bool(parameters) and self._is_job(parameters[0])
        types: dict[str, Any] = {}
        for parameter in parameters[1 if takes_job else 0 :]:
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                raise UsageError(f"{self.name}() takes '{parameter.name}' by position only; remove the '/'")
            types[parameter.name] = self._type_of(parameter)
        required = frozenset(
            name for name in types if self.signature.parameters[name].default is inspect.Parameter.empty
        )
        positional = sum(self.signature.parameters[name].kind in _POSITIONAL for name in types)
        return Taken(takes_job, types, required, positional)

    def _type_of(self, parameter: inspect.Parameter) -> Any:
        if parameter.annotation is inspect.Parameter.empty:
            return Any
        found, error = self._evaluated(parameter.annotation)
        if found is _UNKNOWN:
            module = getattr(self.fn, "__module__", "its module")
            raise UsageError(
                f"parameter '{parameter.name}' of {self.name}() is annotated {written(parameter.annotation)}, which "
                f"{module} does not hold at run time ({error}); if it is imported under TYPE_CHECKING, import it "
                "outside, and name the task decorator in ruff's lint.flake8-type-checking."
                "runtime-evaluated-decorators, so that it stays there"
            )
        return found

    def _evaluated(self, annotation: object) -> tuple[object, str]:
        inner = inspect.unwrap(self.fn)
        cells = zip(
            getattr(getattr(inner, "__code__", None), "co_freevars", ()),
            getattr(inner, "__closure__", None) or (),
            strict=False,
        )
        local = {name: cell.cell_contents for name, cell in cells if _filled(cell)}
        names: dict[str, Any] = getattr(inner, "__globals__", {})
        holder = SimpleNamespace(__annotations__={"it": annotation})
        try:
            return typing.get_type_hints(holder, names, local, include_extras=True)["it"], ""
        except Exception as error:  # an annotation may be any expression
            return _UNKNOWN, f"{type(error).__name__}: {error}"

    def _is_job(self, parameter: inspect.Parameter) -> bool:
        found, _ = self._evaluated(parameter.annotation)
        if found is _UNKNOWN:
            # Job itself may be imported under TYPE_CHECKING: its name has to do.
            return re.fullmatch(rf"(\w+\.)*{self.job_type.__name__}", str(parameter.annotation)) is not None
        return isinstance(found, type) and issubclass(found, self.job_type)

    def _mentions_job(self, parameter: inspect.Parameter, *, certain: bool) -> bool:
        if parameter.annotation is inspect.Parameter.empty:
            return False
        found, _ = self._evaluated(parameter.annotation)
        if found is _UNKNOWN:
            return (
                not certain
                and re.search(rf"\b{self.job_type.__name__}\b", str(parameter.annotation)) is not None
            )
        return _holds(found, self.job_type)

    def _refuse_misplaced_job(self, *, certain: bool) -> None:
        for index, parameter in enumerate(self.signature.parameters.values()):
            if not self._mentions_job(parameter, certain=certain):
                continue
            first = (
                index == 0 and parameter.kind in _POSITIONAL and parameter.default is inspect.Parameter.empty
            )
            if not (first and self._is_job(parameter)):
                raise UsageError(
                    f"{self.name}() takes its {self.job_type.__name__} as '{parameter.name}: "
                    f"{written(parameter.annotation)}'; it comes first, without a default: "
                    f"write `{self._corrected(parameter)}`"
                )

    def _refuse_open_ends(self) -> None:
        for parameter in self.signature.parameters.values():
            if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
                stars, kind = (
                    ("*", "list") if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ("**", "dict")
                )
                raise UsageError(
                    f"{self.name}() takes {stars}{parameter.name}, but arguments are stored by name; take one "
                    f"'{parameter.name}: {kind}[...]' instead (or, in a wrapper, use functools.wraps)"
                )

    def _corrected(self, job: inspect.Parameter) -> str:
        parts = [f"{job.name}: {self.job_type.__name__}"]
        starred = False
        for parameter in self.signature.parameters.values():
            if parameter.name == job.name:
                continue
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
                parts.append("*")
                starred = True
            parts.append(self._declared(parameter))
        keyword = "async def" if inspect.iscoroutinefunction(self.fn) else "def"
        returned = self.signature.return_annotation
        module = getattr(self.fn, "__module__", None)
        arrow = "" if returned is inspect.Signature.empty else f" -> {written(returned, module)}"
        return f"{keyword} {getattr(self.fn, '__name__', 'handler')}({', '.join(parts)}){arrow}:"

    def _declared(self, parameter: inspect.Parameter) -> str:
        text = parameter.name
        if parameter.annotation is not inspect.Parameter.empty:
            text += f": {written(parameter.annotation, getattr(self.fn, '__module__', None))}"
        if parameter.default is not inspect.Parameter.empty:
            text += f" = {parameter.default!r:.40}" if ":" in text else f"={parameter.default!r:.40}"
        return text

    def fit(
        self, args: tuple[object, ...], kwargs: Mapping[str, object], takes_job: bool
    ) -> dict[str, object]:
        """Bind a call to the parameters without the job; raise UsageError in the words of Python's TypeError."""
        parameters = list(self.signature.parameters.values())[1 if takes_job else 0 :]
        signature = inspect.Signature(parameters)
        try:
            return dict(signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            hint = "; to be given its Job, annotate it: `job: Job`" if _forgot_job(parameters) else ""
            raise UsageError(
                f"{self.name}() {error!s}; it takes ({', '.join(map(self._declared, parameters))}){hint}"
            ) from None


def _forgot_job(parameters: list[inspect.Parameter]) -> bool:
    first = parameters[0] if parameters else None
    return first is not None and first.name == "job" and first.annotation is inspect.Parameter.empty


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name of the enclosing function that has no value yet
        return False


def _holds(annotation: object, job_type: type) -> bool:
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return issubclass(annotation, job_type)
    return any(_holds(inner, job_type) for inner in typing.get_args(annotation))


def written(annotation: object, module: str | None = None) -> str:
    """Return an annotation as code has it, without the name of the module it stands in."""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation, module)
