"""A graph of ATen operators whose parts Kiln computes, and whose rest torch does.

The steps: choose parts, tune what the database has no programs for, compile, check against eager,
time against eager and Inductor, and let Inductor compile what is left with a call for each part.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from kiln.errors import KilnError
from kiln.network import Network
from kiln.torch import inductor
from kiln.torch.context import Unsupported
from kiln.torch.convert import Converted, convert
from kiln.torch.linear_layers import with_whole_layers
from kiln.torch.measure import full_precision, seconds_of, tolerance_of, why_wrong
from kiln.torch.network import Place, TensorCall
from kiln.torch.options import Options
from kiln.torch.part_operator import PartOperator, call_part
from kiln.torch.partition import Part, parts_of, with_parts_as_calls
from kiln.torch.report import PartReport, Report

# A function of a graph's inputs, in a list, that returns its outputs.
Compiled = Callable[[Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True)
class _Written:
    """A part as a file that Kiln tunes and compiles."""

    part: Part
    report: PartReport
    converted: Converted
    path: str
    # Keys of the computations of its tasks. Layers that repeat have the same ones.
    keys: frozenset[str]
    is_to_tune: bool


@contextlib.contextmanager
def _errors_in(report: PartReport) -> Iterator[None]:
    """A block whose failure is why the part is not used."""
    try:
        yield
    except (KilnError, Unsupported) as error:
        report.why_not = str(error)


class GraphProgram:
    """A graph and the parts of it that Kiln computes."""

    def __init__(
        self,
        module: fx.GraphModule,
        frozen: Sequence[bool],
        options: Options,
        report: Report,
        mode: str | None = None,
    ) -> None:
        """`module` is changed. `frozen` says which placeholders are parameters.

        `mode` is Inductor's, for the rest.
        """
        self._module = module = with_whole_layers(module)
        self._options = options
        self._report = report
        self._mode = mode
        self._placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._written = {
            node.args[0]
            for node in module.graph.nodes
            if node.target is torch.ops.aten.copy_.default
        }
        self._frozen = {
            node
            for node, is_frozen in zip(self._placeholders, frozen)
            if is_frozen and node not in self._written
        }
        # The parts that Kiln computes, and their programs with the elements of tune()'s inputs.
        self._used: list[Part] = []
        self._first: list[PartOperator] = []
        self._place: Place | None = None

    def tune(self, values: Sequence[Any]) -> Compiled | None:
        """Finds programs for the parts, with these inputs. None: torch's own are better."""
        begin = time.monotonic()
        with inductor.apart():
            self._tune_parts(values)
            made = self._joined(self._first, values) if self._used else None
            self._first = []
            if made is not None and not self._is_alone() and not self._options.always:
                made = self._if_faster(made, values)
        self._report.seconds = time.monotonic() - begin
        return made

    def compile(self, values: Sequence[Any]) -> Compiled:
        """A function of the graph's inputs, with the elements that parameters have now.

        Its programs are checked against eager on these inputs. KilnError: one is wrong.
        """
        with inductor.apart():
            read = self._values(values, self._used)
            return self._joined([self._operator(part, read) for part in self._used], values)

    def parameters(self) -> list[int]:
        """The places of the graph's inputs whose elements the programs hold."""
        held = {node for part in self._used for node in part.parameters}
        return [index for index, node in enumerate(self._placeholders) if node in held]

    def models(self, values: Sequence[Any]) -> list[Converted]:
        """The parts as models, without programs."""
        parts, left = parts_of(self._module, self._frozen)
        self._report.left += left
        read = self._values(values, parts)
        return [_converted(part, read) for part in parts]

    # ---- parts ------------------------------------------------------------------------------

    def _tune_parts(self, values: Sequence[Any]) -> None:
        parts, left = parts_of(self._module, self._frozen)
        self._report.left += left
        if not parts:
            return
        self._place = Place(self._options, _device_of(parts[0]))
        read = self._values(values, parts)
        for part in parts:
            self._report.parts.append(PartReport(len(part.nodes)))
        with tempfile.TemporaryDirectory(prefix="kiln-torch.") as folder:
            # All are written before one is tuned: those that are to be tuned share the budget.
            written = []
            for index, (part, report) in enumerate(zip(parts, self._report.parts)):
                with _errors_in(report):
                    inside = os.path.join(folder, str(index))
                    written.append(self._as_file(part, read, inside, report))
            shares = _shares(written)
            jobs: dict[frozenset[str], str] = {}
            for each in written:
                with _errors_in(each.report):
                    program = self._tuned(each, shares, jobs)
                    self._judge(each.part, read, program, each.report)
                    if each.report.is_used:
                        self._used.append(each.part)
                        self._first.append(program)

    def _as_file(
        self, part: Part, read: dict[fx.Node, Any], folder: str, report: PartReport
    ) -> _Written:
        assert self._place is not None
        converted = _converted(part, read)
        os.mkdir(folder)
        path = converted.model.write(folder)
        tasks = self._place.tasks(path)
        report.tasks = [(task["task"], float(task["weight"])) for task in tasks]
        report.is_known = self._place.has_programs(tasks)
        is_to_tune = self._place.wants_tuning(report.is_known)
        keys = frozenset(each["workload_key"] for task in tasks for each in task["variants"])
        return _Written(part, report, converted, path, keys, is_to_tune)

    def _tuned(
        self,
        written: _Written,
        shares: dict[frozenset[str], float],
        jobs: dict[frozenset[str], str],
    ) -> PartOperator:
        """The program of a part, which is tuned unless one of `jobs` has done so."""
        place, keys = self._place, written.keys
        assert place is not None
        if written.is_to_tune:
            if keys not in jobs:
                jobs[keys] = place.tune(written.path, shares[keys])
            written.report.job = jobs[keys]
        return _operator_of(place.compile(written.path), written.converted)

    def _judge(
        self,
        part: Part,
        read: dict[fx.Node, Any],
        program: PartOperator,
        report: PartReport,
    ) -> None:
        """Is the program right, and the fastest?"""
        inputs = [read[node] for node in part.inputs]
        all_inputs = [read[node] for node in part.parameters] + inputs
        found = program(inputs)
        expected = [read[node] for node in part.outputs]
        report.error, report.why_not = why_wrong(found, expected, self._tolerance(part))
        report.is_used = self._options.always and not report.why_not
        if report.why_not or self._options.always:
            return
        calls: list[Callable[[], Any]] = [lambda: program(inputs), lambda: part.module(*all_inputs)]
        compiled, why = inductor.compiled(part.module, all_inputs, self._mode)
        if compiled is not None:
            calls.append(lambda: compiled(all_inputs))
        else:
            self._report.notes.append(f"Inductor does not run here, and is not timed: {why}")
        report.kiln_s, report.eager_s, *rest = seconds_of(calls, _device_of(part))
        report.inductor_s = rest[0] if rest else None
        fastest = min([report.eager_s, *rest])
        report.is_used = report.kiln_s <= fastest
        if not report.is_used:
            report.why_not = "it is faster on the example inputs"

    def _operator(self, part: Part, read: dict[fx.Node, Any]) -> PartOperator:
        assert self._place is not None
        converted = _converted(part, read)
        with tempfile.TemporaryDirectory(prefix="kiln-torch.") as folder:
            network = self._place.compile(converted.model.write(folder))
        made = _operator_of(network, converted)
        found = made([read[node] for node in part.inputs])
        expected = [read[node] for node in part.outputs]
        _, said = why_wrong(found, expected, self._tolerance(part))
        if said:
            raise KilnError(f"a program of Kiln's is wrong: {said}")
        return made

    def _tolerance(self, part: Part) -> float:
        if self._options.tolerance is not None:
            return self._options.tolerance
        values = [node.meta.get("val") for node in (*part.nodes, *part.parameters, *part.inputs)]
        return tolerance_of(each.dtype for each in values if isinstance(each, torch.Tensor))

    def _values(self, values: Sequence[Any], parts: Sequence[Part]) -> dict[fx.Node, Any]:
        """The values that the parts read and make, by eager."""
        wanted = {
            node for part in parts for node in (*part.parameters, *part.inputs, *part.outputs)
        }
        return _Recorder(self._module, wanted, self._written).record(self._copied(values))

    def _copied(self, values: Sequence[Any]) -> list[Any]:
        """The inputs, with copies of those that the graph writes to."""
        return [
            value.clone() if node in self._written else value
            for node, value in zip(self._placeholders, values)
        ]

    # ---- the whole --------------------------------------------------------------------------

    def _is_alone(self) -> bool:
        """True if one part is all that the graph computes."""
        inside = {node for part in self._used for node in part.nodes}
        rest = [
            node
            for node in self._module.graph.nodes
            if node.op not in ("placeholder", "get_attr", "output") and node not in inside
        ]
        return len(self._used) == 1 and not rest

    def _joined(self, operators: Sequence[PartOperator], values: Sequence[Any]) -> Compiled:
        return self._alone(operators[0]) if self._is_alone() else self._with_rest(operators, values)

    def _alone(self, operator: PartOperator) -> Compiled:
        part = self._used[0]
        places = [self._placeholders.index(node) for node in part.inputs]
        made = {node: index for index, node in enumerate(part.outputs)}
        output = next(node for node in self._module.graph.nodes if node.op == "output")
        results = list(output.args[0])
        # An output may be an input, None or a number, as it is.
        inputs = {node: index for index, node in enumerate(self._placeholders)}
        is_plain = [made.get(each) for each in results] == list(range(len(made)))

        def call(given: Sequence[Any]) -> Sequence[Any]:
            found = operator([given[place] for place in places])
            if is_plain:
                return found
            return [
                (
                    found[made[each]]
                    if each in made
                    else given[inputs[each]] if each in inputs else each
                )
                for each in results
            ]

        return call

    def _with_rest(self, operators: Sequence[PartOperator], values: Sequence[Any]) -> Compiled:
        """Inductor's program of the graph with a call for each part, or eager's."""
        graph = with_parts_as_calls(
            self._module, self._used, lambda index: (call_part._opoverload, (operators[index].key,))
        )
        compiled, why = inductor.compiled(graph, self._copied(values), self._mode)
        if compiled is None:
            self._report.notes.append(inductor.eager_instead("the rest", why))

        def call(inputs: Sequence[Any]) -> Sequence[Any]:
            # The parts live as long as this function.
            assert operators
            return compiled(inputs) if compiled is not None else graph(*inputs)

        return call

    def _if_faster(self, made: Compiled, values: Sequence[Any]) -> Compiled | None:
        """The function, unless Inductor alone is faster with the whole graph."""
        given = self._copied(values)
        alone, _ = inductor.compiled(self._module, given, self._mode)
        if alone is None:
            return made
        device = _device_of(self._used[0])
        calls = [lambda: made(given), lambda: alone(given)]
        self._report.whole_s, self._report.whole_inductor_s = seconds_of(calls, device)
        if self._report.whole_s <= self._report.whole_inductor_s:
            return made
        for report in self._report.parts:
            if report.is_used:
                report.is_used = False
                report.why_not = "the whole graph is faster by Inductor alone"
        self._used = []
        return None


class _Recorder(fx.Interpreter):
    """Runs a graph by eager, and keeps the values of some nodes."""

    def __init__(self, module: fx.GraphModule, wanted: set[fx.Node], written: set[fx.Node]) -> None:
        """`written` are the placeholders that the graph writes to; their first values are kept."""
        super().__init__(module)
        self._wanted = wanted
        self._written = written
        self._found: dict[fx.Node, Any] = {}

    def record(self, values: Sequence[Any]) -> dict[fx.Node, Any]:
        """The values by node."""
        with full_precision():
            self.run(*values, enable_io_processing=False)
        return self._found

    def run_node(self, n: fx.Node) -> Any:
        found = super().run_node(n)
        if n in self._wanted:
            is_kept_as_is = n.op != "call_function" and n not in self._written
            self._found[n] = found if is_kept_as_is else found.clone()
        return found


def _converted(part: Part, read: dict[fx.Node, Any]) -> Converted:
    placeholders = [node for node in part.module.graph.nodes if node.op == "placeholder"]
    return convert(
        part.module.graph,
        {copied: read[node] for copied, node in zip(placeholders, part.parameters)},
    )


def _shares(written: Sequence[_Written]) -> dict[frozenset[str], float]:
    """The shares of the budget by the work that is to be tuned, for each set of computations."""
    work: dict[frozenset[str], float] = {}
    for each in written:
        if each.is_to_tune:
            work[each.keys] = work.get(each.keys, 0.0) + each.part.flops()
    total = sum(work.values()) or 1.0
    return {keys: flops / total for keys, flops in work.items()}


def _operator_of(network: Network, converted: Converted) -> PartOperator:
    call = TensorCall(network, converted)
    return PartOperator(call, converted.outputs, converted.model.digest())


def _device_of(part: Part) -> torch.device:
    return part.outputs[0].meta["val"].device
