// The loop nest of a state as text.
#include "compiler/schedule/state.h"

namespace kiln::schedule {
namespace {

std::string_view UnitsText(ir::MatrixUnitScope scope) {
  if (scope == ir::MatrixUnitScope::kNone) return "";
  return scope == ir::MatrixUnitScope::kWarp ? ", matrix units" : ", matrix units of four warps";
}

std::string SplitsText(const OnlineTile& tile) {
  if (tile.splits == 1) return "";
  return fmt::format(", {} blocks share the keys{}", tile.splits,
                     tile.is_cluster ? " in a cluster" : "");
}

class LoopPrinter {
 public:
  LoopPrinter(const State& state, bool omit_unit_loops)
      : state_(state), omit_unit_loops_(omit_unit_loops) {}

  std::string Print() {
    out_ = "Placeholder: ";
    std::string_view separator = "";
    for (int i = 0; i < state_.num_stages(); ++i) {
      if (!state_.stage(i).is_placeholder()) continue;
      out_ += separator;
      out_ += state_.stage(i).op->name();
      separator = ", ";
    }
    out_ += '\n';
    for (int i = 0; i < state_.num_stages(); ++i) {
      if (!state_.stage(i).is_placeholder() && state_.attach(i).kind == Attach::kRoot) {
        PrintStage(i, 0);
      }
    }
    return std::move(out_);
  }

 private:
  void PrintStage(int number, int indent) {
    const Stage& stage = state_.stage(number);
    const std::string& name = stage.op->name();
    if (stage.buffering > 1) {
      Line(indent, fmt::format("{} buffering: {}{}", name, stage.buffering,
                               stage.asynchronous ? ", asynchronous" : ""));
    }
    if (stage.online) {
      const OnlineTile& tile = *stage.online;
      Line(indent,
           fmt::format("{} online softmax: {} warps of {} rows, tiles of {} keys{}, depth {}{}{}",
                       name, tile.warps, tile.rows, tile.keys,
                       tile.parts == 1 ? "" : fmt::format(" in {} parts", tile.parts), tile.depth,
                       UnitsText(tile.matrix_unit), SplitsText(tile)));
    }
    for (const ir::HintRow& row : ir::kHints) {
      const int32_t value = stage.hints[row.hint];
      if (value != 0) Line(indent, fmt::format("{} {}: {}", name, row.word, value));
    }
    if (stage.align_offset != 0) {
      Line(indent, fmt::format("{} storage_offset: {}", name, stage.align_offset));
    }
    if (!stage.layout.empty()) {
      std::string axes;
      for (int axis : stage.layout)
        axes += fmt::format("{}{}", axes.empty() ? "" : ", ", IterName(stage, axis));
      Line(indent, fmt::format("{} layout: {}", name, axes));
    }
    for (size_t i = 0; i < stage.loops.size(); ++i) {
      const int loop = static_cast<int>(i);
      const int64_t extent = stage.loop(loop).extent;
      if (!omit_unit_loops_ || extent != 1) {
        const std::string range =
            extent == kUnknownExtent ? "(None)" : fmt::format("(0,{})", extent);
        Line(indent, fmt::format("{} {} {}", AnnotationName(stage.annotation(loop)),
                                 LoopName(stage, loop), range));
        indent += 2;
      }
      for (int attached : state_.AttachedTo(number, loop)) PrintStage(attached, indent);
    }
    Line(indent, fmt::format("{} = ...", name));
  }

  void Line(int indent, std::string_view text) {
    out_.append(indent, ' ');
    out_ += text;
    out_ += '\n';
  }

  const State& state_;
  const bool omit_unit_loops_;
  std::string out_;
};

}  // namespace

std::string PrintLoops(const State& state, bool omit_unit_loops) {
  return LoopPrinter(state, omit_unit_loops).Print();
}

}  // namespace kiln::schedule
