"""Parameters of a benchmark, each declared once.

A schema is a frozen dataclass whose fields are made by `option`, `argument` and `group`:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class LinpackParameters:
        sizes: tuple[int, ...] = option(
            "-n", "--sizes", Counts("size"), metavar="LIST", help="Orders of the matrix.",
            default=(1000,), record="sizes",
        )
        results: ResultsOptions = group(ResultsOptions)

From it come the command-line options (`options_of`), what the command line, the environment and a
configuration file say together (`read_parameters`), and what results keep (`record_of`).

A configuration file is TOML with the long names of options as keys, or it has lines `NAME=value`
as a shell reads them. A parameter may have an older name, which variables of the environment have
too.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gridbench.errors import InputError
from gridbench.quantities import Choice, Flag, Quantity
from gridbench.read_config import line_of_error, line_of_key, read_text
from gridbench.workload.numbers import shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = TypeVar("P", bound="DataclassInstance")
Command = Callable[..., None]

_KEY = "gridbench"
_REMEDY = 'give a file with lines such as `workers = [1, 2, 4]` and `task = "./task"`'
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.ASCII)
_NOTHING = re.compile(r"\s*(?:#.*)?\Z")
_COMMENT = re.compile(r"(?:^|\s+)#.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """How users write a parameter, and what results keep of it."""

    flags: tuple[str, ...]
    """None: an argument of the command."""
    quantity: Quantity[Any]
    metavar: str | None = None
    help: str = ""
    default_text: str = ""
    """The default in words, where it is not a value."""
    multiple: bool = False
    """The option may be given several times."""
    in_files: bool = True
    """Configuration files may have it."""
    older_name: str = ""
    """Another name in configuration files and the environment."""
    record: str = ""
    """The name under which results keep it; empty: they don't."""
    required: bool = False
    """The command line must have it."""

    def key(self, field: str) -> str:
        """Its name in files: that of the option, without dashes before it."""
        return self.flag.removeprefix("--") if self.flags else field

    @property
    def flag(self) -> str:
        """The option in messages: `--check` of `--check/--no-check`; empty for an argument."""
        return self.flags[-1].partition("/")[0] if self.flags else ""

    def given(self, value: Any) -> bool:
        """Whether the command line has it. A flag that is off says something only in a pair such
        as `--check/--no-check`."""
        if value is False:
            return any("/" in flag for flag in self.flags)
        return value is not None and value != ()


@dataclass(frozen=True, slots=True)
class _Shared:
    schema: type[Any]
    default_texts: Mapping[str, str]


def option(
    *flags: str | Quantity[Any],
    help: str,
    metavar: str | None = None,
    default: Any = None,
    default_text: str = "",
    multiple: bool = False,
    in_files: bool = True,
    older_name: str = "",
    record: str = "",
) -> Any:
    """A parameter that is an option: its flags, then its quantity. `default`: the value if nobody
    gives one."""
    *names, quantity = flags
    assert isinstance(quantity, Quantity)
    declared = Declaration(
        flags=tuple(map(str, names)),
        quantity=quantity,
        metavar=metavar,
        help=help,
        default_text=default_text,
        multiple=multiple,
        in_files=in_files,
        older_name=older_name,
        record=record,
    )
    return dataclasses.field(default=default, metadata={_KEY: declared})


def argument(
    quantity: Quantity[Any],
    *,
    metavar: str | None = None,
    default: Any = None,
    multiple: bool = False,
    in_files: bool = True,
    older_name: str = "",
    record: str = "",
    required: bool = False,
) -> Any:
    """A parameter that is an argument of the command; `multiple`: it takes any number of words."""
    declared = Declaration(
        flags=(),
        quantity=quantity,
        metavar=metavar,
        multiple=multiple,
        in_files=in_files,
        older_name=older_name,
        record=record,
        required=required,
    )
    return dataclasses.field(default=default, metadata={_KEY: declared})


def group(schema: type[P], **default_texts: str) -> Any:
    """Parameters that several commands share: a field with another schema. `default_texts`: the
    defaults of some of its fields, in words."""
    shared = _Shared(schema, default_texts)
    return dataclasses.field(default_factory=schema, metadata={_KEY: shared})


def declarations(schema: type[Any]) -> Iterator[tuple[str, Declaration, Any]]:
    """Name of the field, declaration and default of all parameters, those of groups included."""
    for field in dataclasses.fields(schema):
        declared = field.metadata.get(_KEY)
        if isinstance(declared, Declaration):
            yield field.name, declared, field.default
        elif isinstance(declared, _Shared):
            for name, one, default in declarations(declared.schema):
                text = declared.default_texts.get(name, one.default_text)
                yield name, dataclasses.replace(one, default_text=text), default


def keys_of(schema: type[Any]) -> dict[str, str]:
    """Names of fields by those that configuration files have, without older ones."""
    return {one.key(name): name for name, one, _ in declarations(schema) if one.in_files}


# ---- The command line


def options_of(schema: type[Any]) -> Callable[[Command], Command]:
    """Give a command the options of a schema. Its argument `given` is for `read_parameters`."""
    declared = list(declarations(schema))

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_given(**values: Any) -> None:
            given = {name: values.pop(name) for name, _, _ in declared}
            command(given=given, **values)

        decorated: Command = with_given
        for name, one, default in reversed(declared):
            decorated = _click_option(name, one, default)(decorated)
        return decorated

    return decorate


def _click_option(name: str, one: Declaration, default: Any) -> Callable[[Command], Command]:
    """A parameter of a command. Its value is the text as written, as a file may have it as well."""
    kind = click.Choice(list(one.quantity.values)) if isinstance(one.quantity, Choice) else None
    if not one.flags:
        return click.argument(
            name,
            required=one.required,
            metavar=one.metavar,
            type=kind,
            nargs=-1 if one.multiple else 1,
        )
    default_text = one.default_text or _shown(one, default)
    extra = [one.quantity.limits, f"default: {default_text}" if default_text else ""]
    summary_text = "; ".join(filter(None, extra))
    return click.option(
        *one.flags,
        name,
        type=None if isinstance(one.quantity, Flag) else kind or click.UNPROCESSED,
        is_flag=isinstance(one.quantity, Flag),
        default=None,
        multiple=one.multiple,
        metavar=one.metavar,
        help=f"{one.help} [{summary_text}]" if summary_text else one.help,
    )


def _shown(one: Declaration, default: Any) -> str:
    """A default as users would write it; empty: none is shown."""
    if default is None or default is False or default == ():
        return ""
    if default is True:
        return one.flag.removeprefix("--")
    if isinstance(one.quantity, Choice):
        return next(name for name, value in one.quantity.values.items() if value == default)
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return f"{default:g}" if isinstance(default, float) else str(default)


# ---- What users say, wherever they say it


def read_parameters(
    schema: type[P],
    given: Mapping[str, Any],
    *,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> P:
    """The parameters: of the command line, else of the environment, else of the configuration file,
    else the defaults.

    `given`: values by the names of fields, where None, False and an empty tuple say nothing.
    InputError names the option, the variable, or the line.
    """
    said = _in_file(schema, file) if file is not None else {}
    for name, one, _ in declarations(schema):
        variable = (environment or {}).get(one.older_name, "").strip() if one.older_name else ""
        if variable:
            said[name] = one.quantity.parse(f"the variable {one.older_name}", variable)
        value = given.get(name)
        if one.given(value):
            said[name] = one.quantity.parse(one.flag or name, value)
    return _built(schema, said)


def _built(schema: type[P], said: Mapping[str, Any]) -> P:
    values = {}
    for field in dataclasses.fields(schema):
        declared = field.metadata.get(_KEY)
        if isinstance(declared, Declaration):
            if field.name in said:
                values[field.name] = said[field.name]
        elif isinstance(declared, _Shared):
            values[field.name] = _built(declared.schema, said)
    return schema(**values)


def record_of(parameters: DataclassInstance) -> dict[str, Any]:
    """What results keep of the parameters: those with which all cases of a folder are measured."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(parameters):
        declared, value = field.metadata.get(_KEY), getattr(parameters, field.name)
        if isinstance(declared, Declaration):
            if declared.record:
                found[declared.record] = list(value) if isinstance(value, tuple) else value
        elif isinstance(declared, _Shared):
            found |= record_of(value)
    return found


# ---- Configuration files


def _in_file(schema: type[Any], path: Path) -> dict[str, Any]:
    """Values by the names of fields; paths begin at the folder of the file. InputError lists all
    that is wrong."""
    given = _assigned(path, read_text(path, "configuration file", _REMEDY))
    if not given:
        raise InputError("says nothing", file=path, remedy=_REMEDY)
    keys, declared = keys_of(schema), {name: one for name, one, _ in declarations(schema)}
    older = {one.older_name: one.key(name) for name, one in declared.items() if one.older_name}
    found: dict[str, Any] = {}
    names: dict[str, str] = {}
    errors: list[InputError] = []
    for name, value, line in given:
        try:
            key = _known_key(name, keys, older)
            if key in names:
                raise InputError(
                    f"`{name}` is given twice"
                    if name == names[key]
                    else f"`{name}` and `{names[key]}` are the same option",
                    remedy="keep one of the two",
                )
            names[key] = name
            if value != "":
                one = declared[keys[key]]
                found[keys[key]] = one.quantity.parse(f"`{name}`", value, path.parent)
        except InputError as error:
            remedy = error.remedy or _REMEDY
            errors.append(InputError(error.what, file=path, line=line, remedy=remedy))
    if len(errors) > 1:
        wrong = "\n".join(f"  line {one.line}: {one.what}; {one.remedy}" for one in errors)
        raise InputError(f"has {len(errors)} errors:\n{wrong}", file=path, remedy="correct them")
    if errors:
        raise errors[0]
    return found


def _known_key(name: str, keys: Mapping[str, str], older: Mapping[str, str]) -> str:
    if (key := older.get(name, name)) in keys:
        return key
    known = {one.lower(): one for one in (*keys, *older)}
    near = difflib.get_close_matches(name.lower().replace("_", "-"), known, n=1)
    near = near or difflib.get_close_matches(name.lower(), known, n=1)
    raise InputError(
        f"`{shown(name)}` is not known",
        remedy=f"did you mean `{known[near[0]]}`?" if near else f"known are {', '.join(keys)}",
    )


def _assigned(path: Path, text: str) -> list[tuple[str, Any, int | None]]:
    """Names, values, and in which lines they stand."""
    try:
        table = tomllib.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.splitlines() if not _NOTHING.match(line)]
        if lines and (_ASSIGNMENT.match(lines[0]) or _ASSIGNMENT.match(lines[-1])):
            return _shell_lines(path, text)
        raise InputError(
            f"is neither TOML nor lines `NAME=value`: {error}",
            file=path,
            line=line_of_error(error),
            remedy=_REMEDY,
        ) from None
    return [(name, value, line_of_key(text, name)) for name, value in table.items()]


def _shell_lines(path: Path, text: str) -> list[tuple[str, str, int | None]]:
    found: list[tuple[str, str, int | None]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if _NOTHING.match(line):
            continue
        if not (parts := _ASSIGNMENT.match(line)):
            raise InputError(
                f"`{shown(line.strip())}` is no line `NAME=value`",
                file=path,
                line=number,
                remedy="begin comments with #; values of several lines need TOML",
            )
        found.append((parts[1], _unquoted(parts[2].strip()), number))
    return found


def _unquoted(value: str) -> str:
    """Without quotes around all of it, as a shell would have it, and without a comment behind."""
    if value[:1] in ("'", '"'):
        try:
            words = shlex.split(value, comments=True)
        except ValueError:
            words = []
        if len(words) == 1:
            return words[0]
    # Quotes elsewhere are those of an array or of single arguments.
    return _COMMENT.sub("", value)
