#include "compiler/schedule/tvm/program.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/dag/index_limit.h"
#include "compiler/schedule/source/names.h"
#include "compiler/schedule/tvm/combiners.h"
#include "compiler/schedule/tvm/expression.h"
#include "compiler/schedule/tvm/primitives.h"

namespace kiln::schedule {
namespace {

// Reductions for which te has no word.
constexpr std::string_view kReducers = R"(

def reducer(how):
    """How values of the reduction axes are combined: of an operator with several outputs a tuple."""
)";
constexpr std::string_view kWrittenReducers =
    R"(    if how in COMBINERS:
        combine, identity, _ = COMBINERS[how]
        return te.comm_reducer(combine, identity, name=how)
)";
constexpr std::string_view kKnownReducers = R"(    if how in ("argmax", "argmin"):

        def better(a, b):
            return tir.any(b > a if how == "argmin" else a > b)

        def combine(a, b):
            left = tir.any(better(a[1], b[1]), tir.all(tir.EQ(a[1], b[1]), a[0] < b[0]))
            return tuple(tir.Select(left, x, y) for x, y in zip(a, b))

        def identity(index, value):
            least = tir.min_value(value) if how == "argmax" else tir.max_value(value)
            return tir.max_value(index), least

        return te.comm_reducer(combine, identity, name=how)
    one = {"sum": lambda x, y: x + y, "prod": lambda x, y: x * y, "max": te.max, "min": te.min, "any": tir.any,
           "all": tir.all}[how]
    neutral = {"sum": lambda t: tir.const(0, t), "prod": lambda t: tir.const(1, t), "max": tir.min_value,
               "min": tir.max_value, "any": lambda t: tir.const(0, t), "all": lambda t: tir.const(1, t)}[how]

    def combine_all(a, b):
        return tuple(one(x, y) for x, y in zip(a, b)) if isinstance(a, (tuple, list, tvm.ir.Array)) else one(a, b)

    def identities(*types):
        neutrals = tuple(neutral(t) for t in types)
        return neutrals if len(types) > 1 else neutrals[0]

    return te.comm_reducer(combine_all, identities, name=how)
)";

// The oracle computes all points of an operator's axes at once, and large reductions in parts.
constexpr std::string_view kOracle = R"(

def at(array, *indices):
    """What stands there; where a condition keeps it from being used, the indices may be outside."""
    return array[tuple(np.clip(index, 0, extent - 1) for index, extent in zip(indices, array.shape))]


def erf(x):
    return np.vectorize(math.erf, otypes=[np.asarray(x).dtype])(x)


def rsqrt(x):
    return 1 / np.sqrt(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reduce_last(how, parts):
    """Of each output's values along the last axis."""
)";
constexpr std::string_view kWrittenOracle = R"(    if how in COMBINERS:
        while parts[0].shape[-1] > 1:  # neighbours become one
            even = parts[0].shape[-1] // 2 * 2
            left, right = [part[..., 0:even:2] for part in parts], [part[..., 1:even:2] for part in parts]
            pairs = [np.broadcast_to(pair, one.shape) for pair, one in zip(COMBINERS[how][2](left, right), left)]
            parts = [np.concatenate([pair, part[..., even:]], -1) for pair, part in zip(pairs, parts)]
        return [part[..., 0] for part in parts]
)";
constexpr std::string_view kKnownOracle = R"(    if how in ("argmax", "argmin"):
        index, value = parts
        best = value.max(-1) if how == "argmax" else value.min(-1)
        return [np.where(value == best[..., None], index, np.iinfo(np.int64).max).min(-1), best]
    wide = {"f": np.float64}
    return [{"sum": lambda x: x.sum(-1, dtype=wide.get(x.dtype.kind)), "prod": lambda x: x.prod(-1),
             "max": lambda x: x.max(-1), "min": lambda x: x.min(-1), "any": lambda x: x.any(-1),
             "all": lambda x: x.all(-1)}[how](part) for part in parts]


def values(types, body, axes, reduce=(), how=None):
    """The outputs of an operator: body(i, j, ..., k, ...) over its axes, combined over those of `reduce`."""
    walked = 0  # reduction axes that are walked point by point, so that the others fit into memory
    while walked < len(reduce) and math.prod(axes) * math.prod(reduce[walked:]) > MOST:
        walked += 1
    extents = tuple(axes) + tuple(reduce[walked:])
    grid = [np.arange(n).reshape([-1 if i == axis else 1 for i in range(len(extents))])
            for axis, n in enumerate(extents)]
    outputs = None
    for point in np.ndindex(*reduce[:walked]):
        parts = body(*grid[: len(axes)], *point, *grid[len(axes) :])
        parts = [np.broadcast_to(part, extents) for part in (parts if isinstance(parts, tuple) else (parts,))]
        if how is not None:
            parts = reduce_last(how, [part.reshape(tuple(axes) + (-1,)) for part in parts])
            if outputs is not None:
                parts = reduce_last(how, [np.stack(pair, -1) for pair in zip(outputs, parts)])
        outputs = parts
    outputs = [np.asarray(output).astype(t) for t, output in zip(types, outputs)]
    return outputs if len(types) > 1 else outputs[0]
)";

constexpr std::string_view kMain = R"(

def main():
    s, args = scheduled()
    print(tvm.lower(s, args, simple_mode=True)) if "--lower" in sys.argv else tvm.lower(s, args)
    device = tvm.device(TARGET.kind.name)
    if not tvm.runtime.enabled(TARGET.kind.name) or not device.exist:
        print(f"lowered; this TVM has no {TARGET.kind.name} to build and run it")
        return 0
    # Without common subexpressions, whose debug information LLVM refuses where they are floats.
    with tvm.transform.PassContext(config={"tir.disable_cse_tir": True}):
        program = tvm.build(s, args, TARGET)
    arrays = inputs(np.random.default_rng(1))
    expected = reference(*arrays)
    outputs = [tvm.nd.empty(array.shape, str(array.dtype), device) for array in expected]
    program(*[tvm.nd.array(array, device) for array in arrays], *outputs)
    largest = 0.0
    for output, right in zip(outputs, expected):
        got, right = output.numpy().astype("float64"), right.astype("float64")
        largest = max(largest, float(np.max(np.abs(got - right)) / max(np.max(np.abs(right)), 1e-30)))
    if not largest <= TOLERANCE:
        print(f"wrong answer: the largest error is {largest:.1e}")
        return 1
    time = program.time_evaluator(program.entry_name, device, number=3)
    seconds = time(*[tvm.nd.array(array, device) for array in arrays], *outputs).mean
    print(f"right, the largest error is {largest:.1e}; {1e6 * seconds:.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
)";

std::string TupleText(const std::vector<int64_t>& values) {
  std::string text = "(";
  for (int64_t value : values) text += fmt::format("{}, ", value);
  if (values.size() > 1) text.resize(text.size() - 2);
  if (values.size() == 1) text.resize(text.size() - 1);
  return text + ")";
}

template <typename Range>
std::string Joined(const Range& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

class ProgramPrinter {
 public:
  ProgramPrinter(const State& state, std::string_view target)
      : initial_(state.initial_dag()),
        dag_(*state.initial_dag()),
        combiners_(dag_),
        names_(initial_, TvmReservedWords()),
        target_(target) {
    for (int i = 0; i < dag_.size(); ++i) taken_.insert(names_.Stage(i));
    for (const dag::Tensor& argument : dag_.arguments()) {
      (dag_.op(argument.op).is_placeholder() ? inputs_ : outputs_).push_back(argument);
    }
  }

  Status CheckOperators() const {
    for (const dag::OpNode& node : dag_.nodes()) {
      for (int k = 0; k < node.op->num_outputs(); ++k) {
        const ir::Type type = node.op->type(k);
        if (!type.is_short_float() || type == ir::kFloat16) continue;
        return InvalidArgument("{} is of {}, which numpy does not have: expected other types",
                               node.op->name(), ir::TypeName(type));
      }
    }
    return OkStatus();
  }

  std::string Print(std::string_view primitives) {
    text_ =
        "import math\nimport sys\n\nimport numpy as np\nimport tvm\nfrom tvm import te, tir\n\n";
    Line("TARGET = tvm.target.Target({})", PythonText(target_));
    Line("TOLERANCE = {}", HasHalf() ? "2e-2" : "1e-3");
    Line("MOST = 1 << 24  # values that the check holds of an operator at once");
    if (!combiners_.empty()) text_ += combiners_.Definitions();
    if (NeedsReducers()) {
      text_ += kReducers;
      if (!combiners_.empty()) text_ += kWrittenReducers;
      text_ += kKnownReducers;
    }
    Scheduled(primitives);
    text_ += kOracle;
    if (!combiners_.empty()) text_ += kWrittenOracle;
    text_ += kKnownOracle;
    Inputs();
    Reference();
    text_ += kMain;
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  // numpy has the operator's outputs in their order, and TVM in its own.
  enum class Of { kNumpy, kTvm };

  std::string Tensor(dag::Tensor tensor, Of of) const {
    const std::string& name = names_.Stage(tensor.op);
    const dag::Operator& op = dag_.op(tensor.op);
    if (op.num_outputs() == 1) return name;
    return fmt::format("{}[{}]", name,
                       of == Of::kTvm ? TvmOutputsOf(op).Place(tensor.output) : tensor.output);
  }
  std::vector<std::string> Tensors(const std::vector<dag::Tensor>& tensors, Of of) const {
    std::vector<std::string> names;
    for (const dag::Tensor& tensor : tensors) names.push_back(Tensor(tensor, of));
    return names;
  }

  // Returns the combiner's name in the program.
  std::string_view How(const dag::Operator& op) const {
    return op.combiner() == dag::Combiner::kCustom ? combiners_.NameOf(op)
                                                   : dag::CombinerName(op.combiner());
  }

  // Returns true for reductions of one output that te has a word for, such as te.sum.
  static bool IsPlain(const dag::Operator& op) {
    const dag::Combiner combiner = op.combiner();
    return op.num_outputs() == 1 && combiner != dag::Combiner::kProd &&
           combiner != dag::Combiner::kAny && combiner != dag::Combiner::kAll &&
           combiner != dag::Combiner::kCustom;
  }
  bool NeedsReducers() const {
    return std::ranges::any_of(dag_.nodes(), [](const dag::OpNode& node) {
      return node.op->is_reduction() && !IsPlain(*node.op);
    });
  }
  bool HasHalf() const {
    return std::ranges::any_of(
        dag_.nodes(), [](const dag::OpNode& node) { return node.op->type() == ir::kFloat16; });
  }

  // Returns names for the axes as variables of a lambda: their own, unless tensors have taken
  // those.
  std::vector<std::string> AxisNames(const dag::Operator& op) const {
    std::vector<std::string> names;
    const auto add = [&](const dag::Axis& axis) {
      std::string name = PythonName(axis.name);
      while (IsTaken(name) || std::ranges::find(names, name) != names.end()) name += '_';
      names.push_back(std::move(name));
    };
    for (const dag::Axis& axis : op.axes()) add(axis);
    for (const dag::Axis& axis : op.reduce_axes()) add(axis);
    return names;
  }
  bool IsTaken(const std::string& name) const {
    return taken_.contains(name) || SourceNames::IsReserved(name) ||
           std::ranges::find(TvmReservedWords(), name) != TvmReservedWords().end();
  }

  PythonNames NamesOf(int stage, const std::vector<std::string>& axes, Of of) const {
    return {[&axes](int32_t id) { return axes[static_cast<size_t>(id)]; },
            [this, stage, of](int32_t slot) {
              return Tensor(dag_.node(stage).inputs[static_cast<size_t>(slot)], of);
            }};
  }

  // Returns the bodies, as a tuple if there are several outputs.
  std::string TvmBodies(int stage, const std::vector<std::string>& axes) const {
    const PythonNames names = NamesOf(stage, axes, Of::kTvm);
    const dag::Operator& op = dag_.op(stage);
    const TvmOutputs outputs = TvmOutputsOf(op);
    std::vector<std::string> bodies;
    for (const std::vector<int>* those : {&outputs.copied, &outputs.updated})
      for (int output : *those) bodies.push_back(TvmExpression(op.body(output), names));
    return bodies.size() == 1 ? bodies[0] : fmt::format("({})", Joined(bodies));
  }
  std::string NumpyBodies(int stage, const std::vector<std::string>& axes) const {
    const PythonNames names = NamesOf(stage, axes, Of::kNumpy);
    std::vector<std::string> bodies;
    for (ir::Expr body : dag_.op(stage).bodies()) bodies.push_back(NumpyExpression(body, names));
    return bodies.size() == 1 ? bodies[0] : fmt::format("({})", Joined(bodies));
  }

  void Scheduled(std::string_view primitives) {
    Line("\n\ndef scheduled():\n    \"\"\"The schedule, and the inputs and outputs.\"\"\"");
    for (int i = 0; i < dag_.size(); ++i) {
      const dag::Operator& op = dag_.op(i);
      if (op.is_placeholder()) {
        Line("    {} = te.placeholder({}, name={}, dtype=\"{}\")", names_.Stage(i),
             TupleText(op.shape()), PythonText(op.name()), ir::TypeName(op.type()));
      } else {
        DeclareOperator(i);
      }
    }
    // An operator with several outputs is listed once.
    std::vector<std::string> operators;
    for (const dag::Tensor& output : outputs_) {
      if (output.output == 0) operators.push_back(Tensor(output, Of::kTvm) + ".op");
    }
    Line("    s = te.create_schedule([{}])", Joined(operators));
    while (!primitives.empty()) {
      const size_t end = primitives.find('\n');
      Line("    {}", primitives.substr(0, end));
      primitives.remove_prefix(end + 1);
    }
    std::vector<std::string> all = Tensors(inputs_, Of::kTvm);
    for (std::string& output : Tensors(outputs_, Of::kTvm)) all.push_back(std::move(output));
    Line("    return s, [{}]", Joined(all));
  }

  void DeclareOperator(int stage) {
    const dag::Operator& op = dag_.op(stage);
    const std::vector<std::string> axes = AxisNames(op);
    const auto spatial = static_cast<std::ptrdiff_t>(op.axes().size());
    const std::vector<std::string> outer(axes.begin(), axes.begin() + spatial);
    const std::vector<std::string> reduced(axes.begin() + spatial, axes.end());
    for (size_t i = 0; i < reduced.size(); ++i) {
      Line("    {} = te.reduce_axis((0, {}), name={})", reduced[i], op.reduce_axes()[i].extent,
           PythonText(op.reduce_axes()[i].name));
    }
    std::string body = TvmBodies(stage, axes);
    if (op.is_reduction()) {
      const std::string_view how = How(op);
      const std::string function =
          IsPlain(op) ? fmt::format("te.{}", how) : fmt::format("reducer(\"{}\")", how);
      body = fmt::format("{}({}, axis=[{}])", function, body, Joined(reduced));
    }
    const std::string parameters = outer.empty() ? "" : " " + Joined(outer);
    Line("    {} = te.compute({}, lambda{}: {}, name={})", names_.Stage(stage),
         TupleText(op.shape()), parameters, body, PythonText(op.name()));
  }

  // The values of an input that is an index stay below the extent that it indexes.
  void Inputs() {
    const std::vector<int64_t> limits = dag::IndexLimits(dag_);
    Line("\n\ndef inputs(generator):\n    return [");
    for (const dag::Tensor& input : inputs_) {
      const dag::Operator& op = dag_.op(input.op);
      const std::string shape = TupleText(op.shape());
      const std::string_view type = ir::TypeName(op.type());
      const int64_t limit = limits[static_cast<size_t>(input.op)];
      if (op.type().is_float()) {
        Line("        np.asarray(generator.uniform({}, 1, {})).astype(\"{}\"),",
             HasRoots() ? "0.1" : "-1", shape, type);
      } else if (op.type().is_bool()) {
        Line("        np.asarray(generator.integers(0, 2, {})).astype(\"bool\"),", shape);
      } else {
        Line("        np.asarray(generator.integers({}, {}, {})).astype(\"{}\"),",
             limit > 0 ? 0 : -8, limit > 0 ? limit : 8, shape, type);
      }
    }
    Line("    ]");
  }

  // Returns true if there are functions that are not defined for negative numbers.
  bool HasRoots() const {
    const auto has = [](const auto& self, ir::Expr e) -> bool {
      if (e->op == ir::Op::kCall) {
        const ir::Intrinsic f = e->intrinsic();
        if (f == ir::Intrinsic::kLog || f == ir::Intrinsic::kSqrt || f == ir::Intrinsic::kRsqrt ||
            f == ir::Intrinsic::kPow)
          return true;
      }
      return std::ranges::any_of(e->args(), [&](ir::Expr arg) { return self(self, arg); });
    };
    return std::ranges::any_of(dag_.nodes(), [&](const dag::OpNode& node) {
      const dag::CustomCombinerPtr& custom = node.op->reduction().custom;
      const auto in = [&](ir::Expr body) { return has(has, body); };
      return std::ranges::any_of(node.op->bodies(), in) ||
             (custom != nullptr && std::ranges::any_of(custom->results, in));
    });
  }

  void Reference() {
    Line("\n\ndef reference({}):\n    \"\"\"The outputs, by numpy.\"\"\"",
         Joined(Tensors(inputs_, Of::kNumpy)));
    for (int i = 0; i < dag_.size(); ++i) {
      const dag::Operator& op = dag_.op(i);
      if (op.is_placeholder()) continue;
      const std::vector<std::string> axes = AxisNames(op);
      std::vector<std::string> types;
      for (int k = 0; k < op.num_outputs(); ++k)
        types.push_back(fmt::format("\"{}\"", ir::TypeName(op.type(k))));
      std::string reductions;
      if (op.is_reduction()) {
        std::vector<int64_t> extents;
        for (const dag::Axis& axis : op.reduce_axes()) extents.push_back(axis.extent);
        reductions = fmt::format(", {}, \"{}\"", TupleText(extents), How(op));
      }
      const std::string parameters = axes.empty() ? "" : " " + Joined(axes);
      Line("    {} = values([{}], lambda{}: {}, {}{})", names_.Stage(i), Joined(types), parameters,
           NumpyBodies(i, axes), TupleText(op.shape()), reductions);
    }
    Line("    return [{}]", Joined(Tensors(outputs_, Of::kNumpy)));
  }

  const State initial_;
  const dag::Dag& dag_;
  const PythonCombiners combiners_;
  const SourceNames names_;
  const std::string target_;
  // Names of tensors.
  std::unordered_set<std::string> taken_;
  std::vector<dag::Tensor> inputs_, outputs_;
  std::string text_;
};

// Threads combine their values by exchanging all outputs at once. The copies that an update leaves
// mean nothing then, so such schedules are refused.
Status CheckCopiesStayWithinAThread(const State& state) {
  for (int i = 0; i < state.num_stages(); ++i) {
    const Stage& stage = state.stage(i);
    if (stage.is_placeholder() || TvmOutputsOf(*stage.op).copied.empty()) continue;
    for (int loop = 0; loop < static_cast<int>(stage.loops.size()); ++loop) {
      if (stage.loop(loop).kind == IterKind::kSpatial || !IsBound(stage.annotation(loop))) continue;
      return InvalidArgument(
          "TVM updates the outputs of {} one after the other, and each of them needs the others as "
          "they were: that is not printed where the threads of {} share the reduction; expected a "
          "schedule that reduces within a thread",
          stage.op->name(), LoopName(stage, loop));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::string> TvmProgram(const State& state, std::string_view target) {
  KILN_ASSIGN_OR_RETURN(const std::string primitives, TvmPrimitives(state));
  KILN_RETURN_IF_ERROR(CheckCopiesStayWithinAThread(state));
  ProgramPrinter printer(state, target);
  KILN_RETURN_IF_ERROR(printer.CheckOperators());
  return printer.Print(primitives);
}

}  // namespace kiln::schedule
