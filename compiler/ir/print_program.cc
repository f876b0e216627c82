#include <fmt/ranges.h>

#include <string_view>
#include <unordered_map>

#include "compiler/ir/program_syntax.h"
#include "compiler/ir/program_text.h"
#include "compiler/ir/text.h"

namespace kiln::ir {
namespace {

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {
    names_.var = [&program](int32_t id) { return program.vars[id].name; };
    names_.slot = [&program](int32_t slot) { return program.buffers[slot].name; };
    for (const ProgramStage& stage : program.stages) ++stages_of_name_[stage.name];
  }

  std::string Print() {
    const int num_args = program_.num_args();
    out_ = num_args == 0 ? "program() {\n" : "program(\n";
    indent_ = 1;
    for (int i = 0; i < num_args; ++i) Line("{},", Declaration(program_.buffers[i]));
    if (num_args > 0) out_ += ") {\n";
    for (const ProgramStage& stage : program_.stages) {
      Line("stage {}{}", ProgramName(stage.name), HintsText(stage.hints));
    }
    for (const Kernel& kernel : program_.kernels) PrintKernel(kernel);
    return out_ + "}\n";
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(static_cast<size_t>(2 * indent_), ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  static std::string Declaration(const Buffer& buffer) {
    std::string text =
        fmt::format("{}: {} {}[{}]", ProgramName(buffer.name), ScopeName(buffer.scope),
                    TypeName(buffer.type), fmt::join(buffer.shape, ", "));
    if (buffer.index_limit > 0) text += fmt::format(" below {}", buffer.index_limit);
    if (buffer.packing) text += fmt::format(" packed of {}", PackingText(*buffer.packing));
    return text;
  }

  static std::string HintsText(const Hints& hints) {
    std::string text;
    for (const HintRow& row : kHints) {
      if (hints[row.hint] != 0) text += fmt::format(" {} {}", row.word, hints[row.hint]);
    }
    return text;
  }

  void PrintKernel(const Kernel& kernel) {
    const std::array<int64_t, 3> one = {1, 1, 1};
    const bool is_launched = kernel.grid != one || kernel.block != one;
    Line("kernel {}{}{}{} {{", ProgramName(kernel.name),
         is_launched ? fmt::format(" grid [{}] block [{}]", fmt::join(kernel.grid, ", "),
                                   fmt::join(kernel.block, ", "))
                     : "",
         kernel.cluster > 1 ? fmt::format(" cluster {}", kernel.cluster) : "",
         HintsText(kernel.hints));
    PrintBlock(kernel.body);
    Line("}}");
  }

  void PrintBlock(Stmt body) {
    ++indent_;
    PrintTail(body);
    --indent_;
  }

  // Prints the last statement of a block. An alloc needs no braces there.
  void PrintTail(Stmt s) {
    if (s->kind == StmtKind::kSeq) {
      const auto children = s->children();
      for (size_t i = 0; i < children.size(); ++i) {
        if (i + 1 < children.size()) {
          Print(children[i]);
        } else {
          PrintTail(children[i]);
        }
      }
    } else if (s->kind == StmtKind::kAlloc) {
      Line("alloc {}", Declaration(program_.buffers[s->slot]));
      PrintTail(s->body());
    } else {
      Print(s);
    }
  }

  void Print(Stmt s) {
    switch (s->kind) {
      case StmtKind::kFor:
        Line("{} {} in 0..{} {{", LoopKindName(s->loop_kind),
             ProgramName(program_.vars[s->var].name), s->extent);
        PrintBlock(s->body());
        return Line("}}");
      case StmtKind::kStore:
        return PrintStore(s);
      case StmtKind::kIf:
        Line("if {} {{", ExprText(s->condition(), names_, kBool));
        PrintBlock(s->body());
        return Line("}}");
      case StmtKind::kSeq:
        return PrintTail(s);
      case StmtKind::kAlloc:
        Line("alloc {} {{", Declaration(program_.buffers[s->slot]));
        PrintBlock(s->body());
        return Line("}}");
      case StmtKind::kInstruction:
        Line("instruction {} {{", ProgramName(program_.instructions[s->instruction]));
        PrintBlock(s->body());
        return Line("}}");
      case StmtKind::kBarrier:
        if (s->is_of_cluster) return Line("cluster_barrier");
        if (s->is_of_warp) return Line("warp_barrier");
        return s->pending < 0 ? Line("barrier") : Line("barrier({})", s->pending);
      case StmtKind::kCommit:
        return Line("commit");
    }
  }

  void PrintStore(Stmt s) {
    std::string indices;
    for (Expr e : s->indices()) {
      if (!indices.empty()) indices += ", ";
      AppendExpr(indices, e, names_, kIndex);
    }
    const Buffer& buffer = program_.buffers[s->slot];
    Line("{}{}[{}] = {} @ {}", s->is_async ? "async " : "", ProgramName(buffer.name), indices,
         ExprText(s->value(), names_, buffer.type), StageText(s->stage));
  }

  std::string StageText(int32_t stage) const {
    const std::string& name = program_.stages[stage].name;
    return stages_of_name_.at(name) == 1 ? ProgramName(name) : fmt::format("{}", stage);
  }

  const Program& program_;
  ExprNames names_;
  std::unordered_map<std::string_view, int> stages_of_name_;
  std::string out_;
  int indent_ = 0;
};

}  // namespace

std::string ProgramText(const Program& program) { return Printer(program).Print(); }

}  // namespace kiln::ir
