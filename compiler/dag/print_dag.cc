#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/dag/text.h"
#include "compiler/dag/text_syntax.h"
#include "compiler/ir/text.h"

namespace kiln::dag {
namespace {

class Printer {
 public:
  Printer(const Dag& dag, std::span<const InputRange> ranges)
      : dag_(dag), ranges_(ranges), names_(DisplayNames(dag)) {}

  std::string Print() {
    if (!IsInOrder()) out_ += "@keep_order\n";
    for (int i = 0; i < dag_.size(); ++i) {
      if (dag_.op(i).is_placeholder()) {
        Range(i);
        out_ += fmt::format("input {}: {}[{}]\n", ir::NameText(names_[i]),
                            TypeName(dag_.op(i).type()), fmt::join(dag_.op(i).shape(), ", "));
      } else {
        WrittenCombiner(dag_.op(i).reduction());
        Attributes(dag_.op(i).attrs());
        Compute(i);
      }
    }
    return std::move(out_);
  }

 private:
  bool IsInOrder() const {
    StatusOr<DagPtr> ordered = Dag::MakeOrdered(dag_.nodes());
    return ordered.ok() && (*ordered)->nodes().size() == dag_.nodes().size() &&
           std::equal(dag_.nodes().begin(), dag_.nodes().end(), (*ordered)->nodes().begin(),
                      [](const OpNode& a, const OpNode& b) {
                        return a.op == b.op && a.inputs == b.inputs;
                      });
  }

  void Range(int i) {
    const auto range =
        std::ranges::find(ranges_, names_[static_cast<size_t>(i)], &InputRange::input);
    if (range == ranges_.end()) return;
    // Integer inputs are printed as 2, not 2.0.
    const bool is_int = dag_.op(i).type().is_int();
    const auto text = [&](double end) {
      return is_int ? fmt::format("{:.0f}", end) : ir::FloatText(end, ir::kFloat64);
    };
    const std::string run = range->run > 0 ? fmt::format(", {}", range->run) : "";
    out_ += fmt::format("@range({}, {}{})\n", text(range->low), text(range->high), run);
  }

  // Prints the definition of a written combiner, before the first operator that uses it.
  void WrittenCombiner(const Reduction& reduction) {
    if (reduction.custom == nullptr || !CombinerText(reduction).empty()) return;
    const CustomCombiner& combiner = *reduction.custom;
    std::string name = combiner.name;
    for (int k = 1; BaseName(name) != combiner.name || IsTaken(name); ++k)
      name = fmt::format("{}'{}", combiner.name, k);
    combiners_.emplace_back(reduction, name);
    const size_t n = combiner.parts.size();
    out_ += fmt::format("combine {}(", ir::NameText(name));
    for (size_t k = 0; k < n; ++k) {
      const CustomCombiner::Part& part = combiner.parts[k];
      if (k > 0) out_ += ", ";
      if (part.low < part.high) {
        out_ += fmt::format("@range({}, {}) ", ir::FloatText(part.low, ir::kFloat64),
                            ir::FloatText(part.high, ir::kFloat64));
      }
      out_ += fmt::format("{}: {}", ir::NameText(part.left), TypeName(part.type));
    }
    for (size_t k = 0; k < n; ++k)
      out_ += fmt::format("{}{}", k == 0 ? "; " : ", ", ir::NameText(combiner.parts[k].right));
    out_ += ") from ";
    const ir::ExprNames names{.var =
                                  [&](int32_t id) {
                                    const auto i = static_cast<size_t>(id);
                                    return i < n ? combiner.parts[i].left
                                                 : combiner.parts[i - n].right;
                                  },
                              .slot = {}};
    Parts(combiner, combiner.identity, names);
    out_ += " = ";
    Parts(combiner, combiner.results, names);
    out_ += '\n';
  }

  void Parts(const CustomCombiner& combiner, std::span<const ir::Expr> parts,
             const ir::ExprNames& names) {
    for (size_t k = 0; k < parts.size(); ++k) {
      if (parts.size() > 1) out_ += k == 0 ? "(" : ", ";
      ir::AppendExpr(out_, parts[k], names, combiner.parts[k].type);
    }
    if (parts.size() > 1) out_ += ')';
  }

  bool IsTaken(const std::string& name) const {
    return std::ranges::any_of(combiners_, [&](const auto& known) { return known.second == name; });
  }

  // Returns the name of a combiner in the text, or "" for a written one that is not printed yet.
  std::string CombinerText(const Reduction& reduction) const {
    if (reduction.custom == nullptr) return std::string(CombinerName(reduction.kind));
    for (const auto& [known, name] : combiners_) {
      if (known == reduction) return ir::NameText(name);
    }
    return {};
  }

  void Attributes(const Attrs& attrs) {
    for (const NameListAttribute& a : kNameListAttributes) {
      if ((attrs.*a.field).empty()) continue;
      std::vector<std::string> names;
      for (const std::string& name : attrs.*a.field) names.push_back(ir::NameText(name));
      out_ += fmt::format("@{}({})\n", a.name, fmt::join(names, ", "));
    }
    for (const TextAttribute& a : kTextAttributes) {
      if (!(attrs.*a.field).empty())
        out_ += fmt::format("@{}({})\n", a.name, ir::NameText(attrs.*a.field));
    }
    if (attrs.flop >= 0)
      out_ += fmt::format("@flop({})\n", ir::FloatText(attrs.flop, ir::kFloat64));
    if (attrs.const_matrix) out_ += "@const_matrix\n";
  }

  void Axes(const std::vector<Axis>& axes) {
    for (size_t i = 0; i < axes.size(); ++i) {
      out_ +=
          fmt::format("{}{}: {}", i > 0 ? ", " : "", ir::NameText(axes[i].name), axes[i].extent);
    }
  }

  void Compute(int i) {
    const OpNode& node = dag_.node(i);
    const Operator& op = *node.op;
    const ir::ExprNames names{
        .var =
            [&op](int32_t id) {
              const auto v = static_cast<size_t>(id);
              return v < op.axes().size() ? op.axes()[v].name
                                          : op.reduce_axes()[v - op.axes().size()].name;
            },
        .slot = [&](int32_t slot) { return TensorName(dag_, names_, node.inputs[slot]); }};
    out_ += ir::NameText(names_[i]);
    out_ += '[';
    Axes(op.axes());
    out_ += "] = ";
    if (op.is_reduction()) {
      out_ += CombinerText(op.reduction());
      out_ += '(';
      Axes(op.reduce_axes());
      out_ += ") ";
    }
    if (op.num_outputs() == 1) {
      ir::AppendExpr(out_, op.body(), names);
    } else {
      for (int k = 0; k < op.num_outputs(); ++k) {
        out_ += k == 0 ? "(" : ", ";
        ir::AppendExpr(out_, op.body(k), names);
      }
      out_ += ')';
    }
    out_ += '\n';
  }

  const Dag& dag_;
  const std::span<const InputRange> ranges_;
  const std::vector<std::string> names_;
  // Combiners that were printed so far.
  std::vector<std::pair<Reduction, std::string>> combiners_;
  std::string out_;
};

}  // namespace

std::string_view BaseName(std::string_view display_name) {
  const size_t quote = display_name.rfind('\'');
  if (quote == std::string_view::npos || quote == 0 || quote + 1 == display_name.size())
    return display_name;
  const std::string_view digits = display_name.substr(quote + 1);
  const bool number =
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number ? display_name.substr(0, quote) : display_name;
}

std::string PartName(const Operator& op, int output) {
  if (IsArg(op.combiner())) return output == 0 ? ".index" : ".value";
  return fmt::format(".v{}", output);
}

std::vector<std::string> DisplayNames(const Dag& dag) {
  std::unordered_set<std::string> taken;
  auto is_free = [&](const std::string& name, const Operator& op) {
    if (taken.contains(name)) return false;
    for (int k = 0; op.num_outputs() > 1 && k < op.num_outputs(); ++k)
      if (taken.contains(name + PartName(op, k))) return false;
    return true;
  };
  std::vector<std::string> names;
  // Maps a name to the lowest number that may still be free.
  std::unordered_map<std::string_view, int> next;
  for (const OpNode& node : dag.nodes()) {
    const std::string& own = node.op->name();
    const int outputs = node.op->num_outputs();
    // A name that already looks like x'1 would be read as x.
    std::string name = own;
    if (BaseName(name) != own || !is_free(name, *node.op)) {
      int& k = next[own];
      do {
        name = fmt::format("{}'{}", own, ++k);
      } while (BaseName(name) != own || !is_free(name, *node.op));
    }
    taken.insert(name);
    for (int k = 0; outputs > 1 && k < outputs; ++k) taken.insert(name + PartName(*node.op, k));
    names.push_back(std::move(name));
  }
  return names;
}

std::string TensorName(const Dag& dag, const std::vector<std::string>& display_names,
                       Tensor tensor) {
  const std::string& name = display_names[tensor.op];
  if (dag.op(tensor.op).num_outputs() == 1) return name;
  return name + PartName(dag.op(tensor.op), tensor.output);
}

std::string PrintDag(const Dag& dag, std::span<const InputRange> ranges) {
  return Printer(dag, ranges).Print();
}

}  // namespace kiln::dag
