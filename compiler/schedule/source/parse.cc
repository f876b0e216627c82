#include "compiler/schedule/source/parse.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text/closest_names.h"
#include "compiler/dag/check_limits.h"
#include "compiler/dag/limits.h"
#include "compiler/schedule/source/kinds.h"
#include "compiler/schedule/source/scope.h"
#include "compiler/schedule/source/source_call.h"
#include "compiler/schedule/source/syntax.h"

namespace kiln::schedule {
namespace {

struct Primitive {
  std::string_view word;
  // True for s[STAGE].word(...), false for s.word(...).
  bool of_stage;
  StatusOr<StepPtr> (*read)(SourceCall& call);
};

// The words. A new kind of step adds its own.
constexpr std::array kPrimitives = std::to_array<Primitive>({
    {"split", true, ReadSplit},
    {"fuse", true, ReadFuse},
    {"reorder", true, ReadReorder},
    {"unroll", true, ReadUnroll},
    {"vectorize", true, ReadVectorize},
    {"parallel", true, ReadParallel},
    {"tensorize", true, ReadTensorize},
    {"bind", true, ReadBind},
    {"pragma", true, ReadPragma},
    {"storage_align", true, ReadStorageAlign},
    {"compute_at", true, ReadComputeAt},
    {"compute_inline", true, ReadComputeInline},
    {"compute_root", true, ReadComputeRoot},
    {"cache_read", false, ReadCacheRead},
    {"cache_write", false, ReadCacheWrite},
    {"rfactor", false, ReadRfactor},
    {"buffering", true, ReadBuffering},
    {"layout", true, ReadLayout},
    {"merge_axes", true, ReadMergeAxes},
    {"move_before", true, ReadMoveStage},
    {"online_softmax", true, ReadOnlineSoftmax},
});

constexpr std::string_view kAxes = "axes";

Status UnknownWord(const SourceToken& word) {
  std::vector<std::string> words = {std::string(kAxes)};
  for (const Primitive& primitive : kPrimitives) words.emplace_back(primitive.word);
  return SourceErrorAt(word, fmt::format("'{}' is no primitive{}; expected one of {}", word.text,
                                         DidYouMean(word.text, words), fmt::join(words, ", ")));
}

class SourceReader {
 public:
  explicit SourceReader(dag::DagPtr dag) : state_(std::move(dag)), scope_(state_) {}

  Status Read(const SourceStatement& statement) {
    if (statement.word.text == kAxes) return NameAxes(statement);
    const auto primitive = std::ranges::find(kPrimitives, statement.word.text, &Primitive::word);
    if (primitive == kPrimitives.end()) return UnknownWord(statement.word);
    if (primitive->of_stage != statement.stage.has_value()) {
      return SourceErrorAt(statement.word, fmt::format("expected {}{}(...)",
                                                       primitive->of_stage ? "s[STAGE]." : "s.",
                                                       statement.word.text));
    }
    if (!statement.has_arguments)
      return SourceErrorAt(statement.word, fmt::format("expected {}(...)", statement.word.text));
    if (state_.steps().size() >= static_cast<size_t>(dag::kMaxSteps)) {
      return SourceErrorAt(statement.word,
                           fmt::format("expected at most {} steps", dag::kMaxSteps));
    }
    SourceCall call(statement, scope_, state_);
    KILN_ASSIGN_OR_RETURN(const StepPtr step, primitive->read(call));
    return Apply(statement, step, call.results());
  }

  State Finish() && { return std::move(state_); }

 private:
  Status NameAxes(const SourceStatement& statement) {
    if (!statement.stage || statement.has_arguments)
      return SourceErrorAt(statement.word, "expected s[STAGE].axes");
    KILN_ASSIGN_OR_RETURN(const int stage, scope_.Stage(*statement.stage));
    const size_t loops = state_.stage(stage).loops.size();
    if (statement.results.size() != loops) {
      return SourceErrorAt(
          statement.word,
          fmt::format("{} has {} loops: expected so many names before '=', found {}",
                      statement.stage->text, loops, statement.results.size()));
    }
    BindLoops(statement, stage, 0);
    return OkStatus();
  }

  Status Apply(const SourceStatement& statement, const StepPtr& step,
               const SourceResults& results) {
    // Notes the split before it is applied, because the loop does not exist afterwards. A refusal
    // ends the reading.
    if (const auto* split = As<SplitStep>(*step))
      scope_.NoteSplit(split->stage_id, split->loop, static_cast<int>(state_.steps().size()));
    const dag::DagPtr before = state_.dag();
    KILN_RETURN_IF_ERROR(
        Annotate(state_.Apply(step),
                 fmt::format("line {}, column {}", statement.word.line, statement.word.column)));
    if (results.moved >= 0) {
      scope_.NoteMove(results.moved, results.moved_to);
      return OkStatus();
    }
    for (int i = 0; i < before->size() && results.new_stage < 0; ++i) {
      if (before->node(i).op != state_.dag()->node(i).op) scope_.NoteFreshLoops(i);
    }
    if (results.new_stage >= 0) {
      scope_.NoteInsertion(results.new_stage, results.resets);
      scope_.BindStage(statement.results[0], results.new_stage);
    } else {
      BindLoops(statement, results.stage, results.first);
    }
    return OkStatus();
  }

  void BindLoops(const SourceStatement& statement, int stage, int first) {
    for (size_t i = 0; i < statement.results.size(); ++i)
      scope_.BindLoop(statement.results[i], stage, first + static_cast<int>(i));
  }

  State state_;
  SourceScope scope_;
};

}  // namespace

StatusOr<State> ParsePrimitives(dag::DagPtr dag, std::string_view text) {
  KILN_RETURN_IF_ERROR(dag::CheckTextBytes("the schedule", text));
  KILN_ASSIGN_OR_RETURN(std::vector<SourceToken> tokens, SourceTokens(text));
  SourceSyntax syntax(std::move(tokens));
  SourceReader reader(std::move(dag));
  while (true) {
    KILN_ASSIGN_OR_RETURN(const std::optional<SourceStatement> statement, syntax.Next());
    if (!statement) return std::move(reader).Finish();
    KILN_RETURN_IF_ERROR(reader.Read(*statement));
  }
}

}  // namespace kiln::schedule
