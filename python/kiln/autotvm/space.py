"""Configuration spaces: how a template declares one, and its points.

While a template's function runs, `cfg` writes the knobs into the text of the template, and its
entities write the steps that use them (kiln.te.schedule). The engine reads the text, so there is
one implementation of knobs, of their order and of the numbers of points.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kiln.errors import InvalidArgumentError
from kiln.te.schedule import IterVar, Recorded, Schedule, text_of_number

if TYPE_CHECKING:
    from kiln.autotvm.task import Task

_SPLIT_POLICIES = ("factors", "power2", "verbose", "candidate")


class InstantiationError(InvalidArgumentError):
    """What cfg.raise_error raises."""


class VirtualAxis:
    """An axis of a space: of so many iterations."""

    def __init__(self, var: Any, name: str | None = None) -> None:
        extent = var if isinstance(var, int) else getattr(var, "extent", None)
        if not isinstance(extent, int):
            raise InvalidArgumentError(
                f"found the axis {var!r}, expected a number, an axis of a stage before any "
                "primitive, or cfg.axis"
            )
        self.length = extent
        self.extent = extent
        self.name = name or getattr(var, "name", "axis")

    def __repr__(self) -> str:
        return f"vaxis({self.name})"


@dataclass(frozen=True)
class SplitEntity:
    """Sizes of loops, the outermost first; -1 is what remains."""

    size: Any
    _knob: str = ""
    _outputs: int = 0

    def apply(self, sch: Schedule, op: Any, axis: Any) -> list[IterVar]:
        """Splits a loop so, and returns the loops, the outermost first."""
        if self._knob:
            return sch[op].split_by(axis, self._knob, self._outputs)
        return list(sch[op].split_into(axis, list(self.size)[1:], True))

    def __repr__(self) -> str:
        return str(self.size)


@dataclass(frozen=True)
class ReorderEntity:
    """An order of loops."""

    perm: Any
    _knob: str = ""

    def apply(self, sch: Schedule, op: Any, axes: Sequence[Any]) -> list[Any]:
        """Gives the loops this order."""
        if self._knob:
            sch[op].reorder(*axes, knob=self._knob)
            return list(axes)
        ordered = [axes[at] for at in self.perm]
        sch[op].reorder(*ordered)
        return ordered

    def __repr__(self) -> str:
        return str(self.perm)


@dataclass(frozen=True)
class AnnotateEntity:
    """An annotation for each loop; of the policy locate_cache the numbers of loops."""

    anns: Any
    _knob: str = ""

    def apply(
        self,
        sch: Schedule,
        op: Any,
        axes: Sequence[Any],
        axis_lens: Any = None,
        max_unroll: int | None = None,
        vec_size: Any = None,
        cfg: Any = None,
        source: Any = None,
    ) -> list[Any]:
        """Annotates the loops.

        `source` refuses; the compiler bounds unrolling and the lanes of vectors by itself, so
        `axis_lens`, `max_unroll` and `vec_size` do nothing.
        """
        del axis_lens, max_unroll, vec_size, cfg
        if source is not None:
            raise InvalidArgumentError("apply: source is given, expected None: use compute_at")
        if self._knob:
            sch[op].annotate(self._knob, axes)
            return list(axes)
        for axis, word in zip(axes, self.anns):
            if word == "unroll":
                sch[op].unroll(axis)
            elif word == "vec":
                sch[op].vectorize(axis)
            elif word != "none":
                sch[op].bind(axis, word)
        return list(axes)

    def __repr__(self) -> str:
        return str(self.anns)


@dataclass(frozen=True)
class OtherOptionEntity:
    """A value of a knob."""

    val: Any

    def __repr__(self) -> str:
        return str(self.val)


_ENTITIES = {
    "sp": SplitEntity,
    "re": ReorderEntity,
    "an": AnnotateEntity,
    "ot": OtherOptionEntity,
}


@dataclass(frozen=True)
class ConfigEntity:
    """A point of a space. config["tile_x"].size are the values of a knob."""

    index: int
    # Knobs as a log has them: ["tile_f", "sp", [-1, 4, 2, 8]].
    entity: tuple[Any, ...]
    # Steps of the schedule; None for a line of a log.
    steps: str | None = None

    is_fallback = False

    @property
    def values(self) -> dict[str, Any]:
        """Values of the knobs by their names."""
        return {name: value for name, _, value in self.entity}

    def __getitem__(self, name: str) -> Any:
        for known, kind, value in self.entity:
            if known == name:
                return _ENTITIES[kind](value)
        raise InvalidArgumentError(f"no knob {name}, expected one of {', '.join(self.values)}")

    def get_flatten_feature(self) -> list[float]:
        """The values as one row of numbers; a word is its length."""
        row: list[float] = []
        for value in self.values.values():
            listed = value if isinstance(value, list) else [value]
            row += [float(len(each) if isinstance(each, str) else each or 0) for each in listed]
        return row

    def get_other_option(self) -> dict[str, Any]:
        """The values of the knobs that are plain values."""
        return {name: value for name, kind, value in self.entity if kind == "ot"}

    def to_json_dict(self) -> dict[str, Any]:
        """The part "config" of a line of a log."""
        return {"index": self.index, "code_hash": None, "entity": [list(e) for e in self.entity]}

    @staticmethod
    def from_json_dict(json_dict: Mapping[str, Any]) -> ConfigEntity:
        """The point of the part "config" of a line of a log."""
        return ConfigEntity(json_dict["index"], tuple(json_dict["entity"]))

    def __str__(self) -> str:
        knobs = ", ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{knobs}, index {self.index}"

    def __repr__(self) -> str:
        return f"{list(self.values.items())},None,{self.index}"


class Knob:
    """What a knob is, as long as the template is written."""

    def __init__(self, kind: str, extent: int, outputs: int, values: Sequence[Any] = ()) -> None:
        self.kind = kind
        self.extent = extent
        self.outputs = outputs
        self.values = list(values)


class _Sizes:
    """The sizes of a split, as a template's text has them."""

    def __init__(self, knob: str, outputs: int) -> None:
        self._knob = knob
        self._outputs = outputs

    def __len__(self) -> int:
        return self._outputs

    def __getitem__(self, at: int) -> Recorded:
        if not -self._outputs <= at < self._outputs or at % self._outputs == 0:
            raise InvalidArgumentError(
                f"{self._knob}: size {at} is what remains or is not there, expected 1 to "
                f"{self._outputs - 1}"
            )
        return Recorded(f"{self._knob}[{at}]")


class _Places:
    """The loops that a knob of locate_cache chooses."""

    def __init__(self, knob: str) -> None:
        self._knob = knob

    def __getitem__(self, at: int) -> Recorded:
        return Recorded(f"{self._knob}[{at}]")


class TemplateConfig:
    """The configuration while a template's function runs: what autotvm.get_config() returns."""

    is_fallback = False

    def __init__(self) -> None:
        self.knobs: dict[str, Knob] = {}
        # Statements of the text.
        self.statements: list[str] = []
        self.flop: float | None = None

    # ---- knobs ------------------------------------------------------------------------------

    def axis(self, var: Any) -> VirtualAxis:
        """An axis of the space, of a number or of a loop."""
        return VirtualAxis(var)

    reduce_axis = axis

    def define_split(
        self, name: str, axis: Any, policy: str = "factors", **kwargs: Any
    ) -> list[VirtualAxis]:
        """A knob: sizes of `num_outputs` loops.

        Further: max_factor, no_tail, candidate, and filter, a function of the entity.
        """
        given = VirtualAxis(axis)
        outputs = int(kwargs.pop("num_outputs", 0)) or len((kwargs.get("candidate") or [[0]])[0])
        if policy not in _SPLIT_POLICIES:
            raise InvalidArgumentError(
                f"{name}: policy {policy!r}, expected one of {', '.join(_SPLIT_POLICIES)}"
            )
        options = [f"outputs={outputs}"]
        if policy != "factors":
            options.append(f"policy={policy}")
        if kwargs.get("max_factor") is not None and kwargs["max_factor"] < given.length:
            options.append(f"max_factor={int(kwargs.pop('max_factor'))}")
        kwargs.pop("max_factor", None)
        if (no_tail := kwargs.pop("no_tail", None)) is not None:
            options.append(f"no_tail={text_of_number(bool(no_tail))}")
        if (candidate := kwargs.pop("candidate", None)) is not None:
            options.append(f"candidate={_lists(candidate)}")
        if (condition := kwargs.pop("filter", None)) is not None:
            said = condition(SplitEntity(_FilterSizes(outputs)))
            options.append(f"filter={text_of_number(said)}")
        _refuse_rest(name, kwargs)
        self._add(
            name, Knob("sp", given.length, outputs), f"split({given.length}, {', '.join(options)})"
        )
        return [VirtualAxis(given.length, f"{name}.{at}") for at in range(outputs)]

    def define_knob(self, name: str, candidate: Sequence[Any]) -> None:
        """A knob: one of these numbers, or of True and False."""
        numbers = ", ".join(text_of_number(each) for each in candidate)
        self._add(name, Knob("ot", 0, 0, list(candidate)), f"[{numbers}]")

    def define_reorder(
        self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any
    ) -> list[Any]:
        """A knob: an order of the loops.

        Policies: identity, all, interval_all with `interval`, candidate with `candidate`,
        interleave and interleave_cuda with `spatial` and `reduce`.
        """
        labels = {id(each): f"a{at}" for at, each in enumerate(axes)}
        options = [f"policy={policy}"]
        if (interval := kwargs.pop("interval", None)) is not None:
            options.append(f"interval=[{int(interval[0])}, {int(interval[1])}]")
        for key in ("candidate", "spatial", "reduce"):
            if (listed := kwargs.pop(key, None)) is not None:
                rows = [
                    f"[{', '.join(_label(labels, each, name) for each in row)}]" for row in listed
                ]
                options.append(f"{key}=[{', '.join(rows)}]")
        _refuse_rest(name, kwargs)
        words = ", ".join([*labels.values(), *options])
        self._add(name, Knob("re", 0, len(axes)), f"reorder({words})")
        return list(axes)

    def define_annotate(
        self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any
    ) -> list[Any]:
        """A knob: an annotation for each loop.

        Policies: words of none, try, unroll and vec joined by _, bind_gpu, bind_gpu_virtual, and
        locate_cache with `num_anchor`.
        """
        options = [f"policy={policy}"]
        if (anchors := kwargs.pop("num_anchor", None)) is not None:
            options.append(f"num_anchor={int(anchors)}")
        _refuse_rest(name, kwargs)
        words = ", ".join([*(f"a{at}" for at in range(len(axes))), *options])
        self._add(name, Knob("an", 0, len(axes)), f"annotate({words})")
        return list(axes)

    def multi_filter(self, filter: Callable[[TemplateConfig], Any]) -> None:
        """Points for which the condition of the entities does not hold are not valid."""
        self.statements.append(f"filter {text_of_number(filter(self))}")

    def add_flop(self, flop: float) -> None:
        """The number of operations, which is counted otherwise."""
        self.flop = (self.flop or 0.0) + float(flop)

    def raise_error(self, msg: str) -> None:
        """InstantiationError: the template does not fit its arguments."""
        raise InstantiationError(msg)

    def valid(self) -> bool:
        """True: what is not valid raises."""
        return True

    def clear_cache(self) -> None:
        """Nothing is kept that would have to be cleared."""

    # ---- their use --------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        if name not in self.knobs:
            raise InvalidArgumentError(
                f"no knob {name} is defined, expected one of {', '.join(self.knobs)}"
            )
        knob = self.knobs[name]
        if knob.kind == "sp":
            return SplitEntity(_Sizes(name, knob.outputs), name, knob.outputs)
        if knob.kind == "re":
            return ReorderEntity(None, name)
        if knob.kind == "an":
            return AnnotateEntity(_Places(name), name)
        return OtherOptionEntity(Recorded(name))

    def _add(self, name: str, knob: Knob, text: str) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise InvalidArgumentError(f"found the knob {name!r}, expected a name")
        if name in self.knobs:
            return
        self.knobs[name] = knob
        self.statements.append(f"knob {name} = {text}")

    # ---- without a search -------------------------------------------------------------------

    def entities(self) -> list[Any] | None:
        """Values of the knobs where they are fixed; None: all are open."""
        return None


class FallbackConfigEntity(TemplateConfig):
    """The configuration of a template that is called where no record is known."""

    is_fallback = True

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, Any] = {}

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Sizes of a split: from the innermost loop on the largest divisors up to these; -1 = any.

        The outermost takes what remains.
        """
        knob = self._split(name)
        if len(constraints) != knob.outputs:
            raise InvalidArgumentError(
                f"{name}: {len(constraints)} constraints, expected {knob.outputs}"
            )
        sizes, rest = [0] * knob.outputs, knob.extent
        for at in reversed(range(knob.outputs)):
            bound = constraints[at] if constraints[at] != -1 else rest
            sizes[at] = max(each for each in get_factors(rest) if each <= max(1, bound))
            rest //= sizes[at]
        self._values[name] = [-1, *sizes[1:]]

    def fallback_with_reference_log(self, ref_log: Sequence[tuple[Any, Any]]) -> None:
        """Takes after the record whose splits are most alike; pairs of record.load_from_file."""
        splits = [name for name, knob in self.knobs.items() if knob.kind == "sp"]
        best: tuple[float, Any] = (0.0, None)
        for given, _ in ref_log:
            values = given.config.values
            if any(name not in values for name in splits):
                continue
            score = 0.0
            for name in splits:
                own = set(get_factors(self.knobs[name].extent))
                product = abs(math.prod(int(each) for each in values[name]))
                score += len(own & set(get_factors(product))) / len(own)
            if score > best[0]:
                best = (score, given.config)
        if best[1] is None:
            return
        for name, kind, value in best[1].entity:
            if name in splits:
                self.fallback_split(name, [-1, *value[1:]])
            elif name in self.knobs and kind == self.knobs[name].kind:
                self._values[name] = value

    def __setitem__(self, name: str, entity: Any) -> None:
        kind = self.knobs[name].kind if name in self.knobs else ""
        fields = {"sp": "size", "re": "perm", "an": "anns", "ot": "val"}
        if not isinstance(entity, _ENTITIES.get(kind, ())):
            raise InvalidArgumentError(f"found {entity!r} for the knob {name!r}")
        self._values[name] = getattr(entity, fields[kind])

    def entities(self) -> list[Any] | None:
        made = []
        for name, knob in self.knobs.items():
            if name in self._values:
                value = self._values[name]
            elif knob.kind == "sp":
                value = [-1, *[1] * (knob.outputs - 1)]
            elif knob.kind == "ot":
                value = knob.values[0]
            else:
                raise InvalidArgumentError(
                    f"no record is known, and nothing says the value of the knob {name}: set "
                    f"cfg[{name!r}], or use autotvm.apply_history_best"
                )
            made.append([name, knob.kind, value])
        return made

    def _split(self, name: str) -> Knob:
        if name not in self.knobs or self.knobs[name].kind != "sp":
            raise InvalidArgumentError(f"{name} is no split that the template has defined")
        return self.knobs[name]


class _FilterSizes:
    """Sizes within the filter of a split: size[-1]."""

    def __init__(self, outputs: int) -> None:
        self._outputs = outputs

    def __len__(self) -> int:
        return self._outputs

    def __getitem__(self, at: int) -> Recorded:
        return Recorded(f"size[{at}]")


def _lists(rows: Sequence[Sequence[int]]) -> str:
    return "[" + ", ".join(f"[{', '.join(str(int(each)) for each in row)}]" for row in rows) + "]"


def _label(labels: Mapping[int, str], axis: Any, name: str) -> str:
    if id(axis) not in labels:
        raise InvalidArgumentError(f"{name}: {axis!r} is none of its axes")
    return labels[id(axis)]


def _refuse_rest(name: str, rest: Mapping[str, Any]) -> None:
    if rest:
        raise InvalidArgumentError(f"{name}: unknown option {', '.join(rest)}")


def get_factors(n: int) -> list[int]:
    """The divisors, ascending."""
    small = [each for each in range(1, math.isqrt(n) + 1) if n % each == 0]
    return small + [n // each for each in reversed(small) if each * each != n]


def get_pow2s(n: int) -> list[int]:
    """The powers of two up to n."""
    return [1 << at for at in range(n.bit_length())]


class ConfigSpace:
    """The space of a task. It prints as TVM prints it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._told: dict[str, Any] | None = None

    def _space(self) -> dict[str, Any]:
        if self._told is None:
            self._told = self._task.ask("space")
        return self._told

    def __len__(self) -> int:
        """The number of valid points."""
        return int(self._space()["len"])

    def __str__(self) -> str:
        return self._space()["text"]

    __repr__ = __str__

    @property
    def knobs(self) -> list[dict[str, Any]]:
        """Name, number of values and kind of each knob."""
        return self._space()["knobs"]

    @property
    def space_map(self) -> dict[str, str]:
        """What each knob is, by its name."""
        return {knob["name"]: knob["what"] for knob in self.knobs}

    @property
    def dims(self) -> list[int]:
        """The number of values of each knob."""
        return [knob["len"] for knob in self.knobs]

    @property
    def range_length(self) -> int:
        """The number of indices, of points that are not valid as well."""
        return int(self._space()["range_length"])

    def get(self, index: int) -> ConfigEntity:
        """The point of this index. KilnError: the space has no such point."""
        found = self._task.ask("config", index=int(index))
        return ConfigEntity(found["index"], tuple(found["entity"]), found["steps"])

    def index_of(self, values: Mapping[str, Any]) -> int:
        """The index of the point with these values. KilnError: there is none."""
        kinds = {name: kind for name, kind, _ in self.get_any().entity}
        listed = [[name, kinds.get(name, "ot"), value] for name, value in values.items()]
        return self._task.ask("index", entity=listed)["index"]

    def get_any(self) -> ConfigEntity:
        """A point that is valid: the first one, or a random one."""
        for index in [0, *(random.randrange(self.range_length) for _ in range(1000))]:
            if self.is_index_valid(index):
                return self.get(index)
        raise InvalidArgumentError("1,000 random points of the space are not valid")

    def is_index_valid(self, index: int) -> bool:
        """Whether the space has the point, and its template makes a schedule of it."""
        try:
            self.get(index)
        except InvalidArgumentError:
            return False
        return True

    def point2knob(self, point: int) -> list[int]:
        """The numbers of the values of each knob, the first knob first."""
        digits = []
        for size in self.dims:
            digits.append(point % size)
            point //= size
        return digits

    def knob2point(self, knob: Sequence[int]) -> int:
        """The index of the numbers of values."""
        index = 0
        for digit, size in zip(reversed(knob), reversed(self.dims)):
            index = index * size + digit
        return index

    def get_rand_index(
        self, start: int | None = None, end: int | None = None, to_exclude: Any = None
    ) -> int:
        """A random valid index from start up to but without end."""
        excluded = set(to_exclude or ())
        low, high = start or 0, self.range_length if end is None else end
        for _ in range(100_000):
            index = random.randrange(low, high)
            if index not in excluded and self.is_index_valid(index):
                return index
        raise InvalidArgumentError(f"no valid index was found from {low} to {high}")

    def get_next_index(
        self, index: int, n: int = 1, start: int | None = None, end: int | None = None
    ) -> int | None:
        """The n-th valid index after one (before it, if n is negative); None at the end."""
        low, high = start or 0, self.range_length if end is None else end
        step = 1 if n > 0 else -1
        left = abs(n)
        while left:
            index += step
            if not low <= index < high:
                return None
            left -= self.is_index_valid(index)
        return index

    def random_walk(self, point: int) -> int:
        """A valid neighbour: random knobs have other values."""
        dims = self.dims
        for _ in range(100_000):
            knobs = self.point2knob(point)
            while self.knob2point(knobs) == point:
                at = random.randrange(len(dims))
                knobs[at] = random.randrange(dims[at])
            index = self.knob2point(knobs)
            if self.is_index_valid(index):
                return index
        raise InvalidArgumentError(f"no valid neighbour of {point} was found")

    def sample_ints(self, m: int) -> list[int]:
        """So many different random valid indices."""
        found: set[int] = set()
        while len(found) < min(m, len(self)):
            found.add(self.get_rand_index(to_exclude=found))
        return list(found)

    def subrange_length(self, start: int, end: int) -> int:
        """The number of valid indices from start up to but without end."""
        if len(self) == self.range_length:
            return max(0, min(end, self.range_length) - max(start, 0))
        return sum(self.is_index_valid(index) for index in range(start, end))


def steps_of(config: ConfigEntity) -> list[Any] | None:
    """The steps of a point; None for a line of a log."""
    return None if config.steps is None else json.loads(config.steps)
