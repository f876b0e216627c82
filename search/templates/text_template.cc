// Runs the statements of a template's text: once up to its last knob, to get the space, and once
// for each configuration.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "compiler/ir/hints.h"
#include "search/templates/schedule_writer.h"
#include "search/templates/template.h"
#include "search/templates/vocabulary.h"

namespace kiln::search {
namespace {

using Kind = Statement::Kind;
using ExpressionKind = Expression::Kind;

// Returns the value of an index or an option of a knob.
StatusOr<int64_t> KnobNumber(const Expression& e, const Entity& entity,
                             absl::FunctionRef<StatusOr<int64_t>(const Expression&)> leaf) {
  if (e.kind == ExpressionKind::kName) {
    const auto* option = std::get_if<OptionEntity>(&entity);
    if (option == nullptr) return InvalidArgument("knob {} is no number", e.text);
    if (const auto* flag = std::get_if<bool>(&option->value)) return *flag ? 1 : 0;
    if (const auto* number = std::get_if<int64_t>(&option->value)) return *number;
    return InvalidArgument("knob {} has the value {}, expected a whole number", e.text,
                           PrintEntity(entity));
  }
  KILN_ASSIGN_OR_RETURN(const int64_t index, Evaluate(e.args[0], leaf));
  const auto* split = std::get_if<SplitEntity>(&entity);
  const auto* places = std::get_if<AnnotateEntity>(&entity);
  const std::vector<int64_t>* list = split != nullptr    ? &split->sizes
                                     : places != nullptr ? &places->places
                                                         : nullptr;
  if (list == nullptr) return InvalidArgument("knob {} has no sizes", e.text);
  const int64_t at = index < 0 ? index + std::ssize(*list) : index;
  if (at < 0 || at >= std::ssize(*list))
    return InvalidArgument("knob {} has {} sizes, found the index {}", e.text, list->size(), index);
  if (split != nullptr && at == 0)
    return InvalidArgument("size 0 of knob {} is what remains, which is not known", e.text);
  return (*list)[static_cast<size_t>(at)];
}

// The meaning of a name while the statements run.
struct Value {
  std::variant<StageRef, LoopRef, int64_t, Expression> is;  // an expression depends on knobs alone
};

class Interpreter {
 public:
  // A null `config` collects the space.
  Interpreter(const TemplateText& text, const dag::DagPtr& dag, const Config* config)
      : text_(text), config_(config), writer_(dag) {}

  StatusOr<ConfigSpace> Space() && {
    size_t last = 0;
    for (size_t i = 0; i < text_.statements.size(); ++i) {
      const Kind kind = text_.statements[i].kind;
      if (kind == Kind::kKnob || kind == Kind::kFilter) last = i + 1;
    }
    for (size_t i = 0; i < last; ++i) KILN_RETURN_IF_ERROR(Run(text_.statements[i]));
    return std::move(space_);
  }

  StatusOr<schedule::State> Schedule() && {
    for (const Statement& statement : text_.statements) KILN_RETURN_IF_ERROR(Run(statement));
    return std::move(writer_).Finish();
  }

 private:
  bool collects() const { return config_ == nullptr; }

  // Adds the position of the statement to errors of the schedule. Other errors have a position
  // already.
  Status Run(const Statement& statement) {
    KILN_RETURN_IF_ERROR(RunKind(statement));
    return AtPosition(statement.at, writer_.status());
  }

  Status RunKind(const Statement& s) {
    switch (s.kind) {
      case Kind::kStage:
        return RunStage(s);
      case Kind::kLet:
        return RunLet(s);
      case Kind::kKnob:
        return collects() ? DefineKnob(s) : CheckKnob(s);
      case Kind::kFilter:
        return collects() ? AddFilter(s) : Require(s);
      case Kind::kRequire:
        return collects() ? OkStatus() : Require(s);
      case Kind::kStep:
        return RunStep(s);
    }
    return OkStatus();
  }

  // ---- declarations

  Status RunStage(const Statement& s) {
    StageRef stage;
    if (s.word == "reduction") {
      stage = writer_.Reduction();
    } else if (s.word == "output") {
      stage = writer_.Output();
    } else if (s.word == "op") {
      stage = writer_.Op(s.args[0].text);
    } else {
      KILN_ASSIGN_OR_RETURN(const int number, Small(s.args[1]));
      stage = writer_.Input(StageOf(s.args[0]), number);
    }
    values_[s.names[0]] = {stage};
    return OkStatus();
  }

  Status RunLet(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(Expression folded, Fold(s.args[0]));
    KILN_RETURN_IF_ERROR(CheckSize(folded));
    if (folded.kind == ExpressionKind::kNumber) {
      values_[s.names[0]] = {folded.number};
    } else {
      values_[s.names[0]] = {std::move(folded)};
    }
    return OkStatus();
  }

  Status Require(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const int64_t holds, Number(s.args[0]));
    if (holds != 0) return OkStatus();
    std::string sides;
    const Expression& e = s.args[0];
    if (e.kind == ExpressionKind::kBinary && e.text != "&&" && e.text != "||") {
      KILN_ASSIGN_OR_RETURN(const int64_t a, Number(e.args[0]));
      KILN_ASSIGN_OR_RETURN(const int64_t b, Number(e.args[1]));
      sides = fmt::format(": {} {} {}", a, e.text, b);
    }
    return AtPosition(s.at, FailedPrecondition("the configuration does not meet {} {}{}",
                                               s.kind == Kind::kFilter ? "filter" : "require",
                                               PrintExpression(e), sides));
  }

  Status AddFilter(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const Expression folded, Fold(s.args[0]));
    KILN_RETURN_IF_ERROR(CheckSize(folded));
    // Knobs are looked up by number, because a filter is evaluated for millions of points.
    std::map<std::string, size_t, std::less<>> numbers;
    for (size_t i = 0; i < space_.knobs().size(); ++i) numbers[space_.knobs()[i].name()] = i;
    space_.AddFilter([folded, numbers](std::span<const Entity* const> entities) {
      const auto leaf = [&](const auto& self, const Expression& e) -> StatusOr<int64_t> {
        return KnobNumber(e, *entities[numbers.find(e.text)->second],
                          [&](const Expression& inner) { return self(self, inner); });
      };
      const StatusOr<int64_t> holds =
          Evaluate(folded, [&](const Expression& e) { return leaf(leaf, e); });
      return holds.ok() && *holds != 0;
    });
    return OkStatus();
  }

  // ---- knobs

  Status CheckKnob(const Statement& s) const {
    if (config_->Find(s.names[0]) != nullptr) return OkStatus();
    return AtPosition(s.at,
                      InvalidArgument("the configuration has no value of knob {}", s.names[0]));
  }

  Status DefineKnob(const Statement& s) {
    return AtPosition(s.at, [&]() -> Status {
      if (s.word == "split") return DefineSplit(s);
      if (s.word == "reorder") return DefineReorder(s);
      if (s.word == "annotate") return DefineAnnotate(s);
      return DefineOption(s);
    }());
  }

  static const Expression* Option(const Statement& s, std::string_view name) {
    for (const auto& [option, value] : s.options) {
      if (option == name) return &value;
    }
    return nullptr;
  }

  Status DefineSplit(const Statement& s) {
    SplitOptions options;
    options.num_outputs = static_cast<int>(Option(s, "outputs")->number);
    if (const Expression* policy = Option(s, "policy")) {
      KILN_ASSIGN_OR_RETURN(options.policy, ParseSplitPolicy(policy->text));
    }
    if (const Expression* most = Option(s, "max_factor")) {
      KILN_ASSIGN_OR_RETURN(options.max_factor, Number(*most));
    }
    if (const Expression* no_tail = Option(s, "no_tail")) {
      KILN_ASSIGN_OR_RETURN(const int64_t value, Number(*no_tail));
      options.no_tail = value != 0;
    }
    if (const Expression* candidates = Option(s, "candidate")) {
      for (const Expression& sizes : candidates->args) {
        auto& list = options.candidates.emplace_back();
        for (const Expression& size : sizes.args) {
          KILN_ASSIGN_OR_RETURN(const int64_t value, Number(size));
          list.push_back(value);
        }
      }
    }
    Status failed = OkStatus();
    if (const Expression* filter = Option(s, "filter")) {
      options.filter = [this, filter, &failed](std::span<const int64_t> sizes) {
        const StatusOr<int64_t> holds =
            Evaluate(*filter, [&](const Expression& e) { return SizeOrNumber(e, sizes); });
        if (!holds.ok() && failed.ok()) failed = holds.status();
        return holds.ok() && *holds != 0;
      };
    }
    int64_t extent = 0;
    const auto named = s.args[0].is_name() ? values_.find(s.args[0].text) : values_.end();
    if (named != values_.end() && std::holds_alternative<LoopRef>(named->second.is)) {
      extent = writer_.Extent(std::get<LoopRef>(named->second.is));
      KILN_RETURN_IF_ERROR(writer_.status());
    } else {
      KILN_ASSIGN_OR_RETURN(extent, Number(s.args[0]));
    }
    StatusOr<Knob> knob = Knob::Split(s.names[0], extent, options);
    KILN_RETURN_IF_ERROR(failed);
    return space_.Add(std::move(knob));
  }

  StatusOr<int64_t> SizeOrNumber(const Expression& e, std::span<const int64_t> sizes) {
    if (e.kind != ExpressionKind::kIndex || e.text != "size") return Leaf(e);
    const auto self = [&](const Expression& inner) { return SizeOrNumber(inner, sizes); };
    KILN_ASSIGN_OR_RETURN(const int64_t index, Evaluate(e.args[0], self));
    const int64_t at = index < 0 ? index + std::ssize(sizes) : index;
    if (at < 0 || at >= std::ssize(sizes))
      return InvalidArgument("there are {} sizes, found the index {}", sizes.size(), index);
    return sizes[static_cast<size_t>(at)];
  }

  static int64_t LabelNumber(const Statement& s, const std::string& label) {
    const auto found = std::ranges::find(s.args, label, &Expression::text);
    return found - s.args.begin();
  }

  static std::vector<std::vector<int64_t>> Chains(const Statement& s, std::string_view option) {
    std::vector<std::vector<int64_t>> chains;
    const Expression* given = Option(s, option);
    if (given == nullptr) return chains;
    for (const Expression& chain : given->args) {
      auto& loops = chains.emplace_back();
      for (const Expression& label : chain.args) loops.push_back(LabelNumber(s, label.text));
    }
    return chains;
  }

  Status DefineReorder(const Statement& s) {
    ReorderOptions options;
    KILN_ASSIGN_OR_RETURN(options.policy, ParseReorderPolicy(Option(s, "policy")->text));
    if (const Expression* interval = Option(s, "interval")) {
      const auto bounded = [](int64_t n) {
        return static_cast<int>(std::clamp<int64_t>(n, -1, 99));
      };
      options.begin = bounded(interval->args[0].number);
      options.end = bounded(interval->args[1].number);
    }
    options.candidates = Chains(s, "candidate");
    options.spatial = Chains(s, "spatial");
    options.reduce = Chains(s, "reduce");
    return space_.Add(Knob::Reorder(s.names[0], static_cast<int>(s.args.size()), options));
  }

  Status DefineAnnotate(const Statement& s) {
    const int loops = static_cast<int>(s.args.size());
    const Expression* anchors = Option(s, "num_anchor");
    if (anchors == nullptr)
      return space_.Add(Knob::Annotate(s.names[0], loops, Option(s, "policy")->text));
    KILN_ASSIGN_OR_RETURN(const int number, Small(*anchors));
    return space_.Add(Knob::Locate(s.names[0], loops, number));
  }

  Status DefineOption(const Statement& s) {
    std::vector<OptionEntity> values;
    for (const Expression& value : s.args) {
      OptionEntity& option = values.emplace_back();
      if (value.is_name() && (value.text == "true" || value.text == "false")) {
        option.value = value.text == "true";
        continue;
      }
      KILN_ASSIGN_OR_RETURN(option.value, Number(value));
    }
    return space_.Add(Knob::Option(s.names[0], std::move(values)));
  }

  // ---- numbers

  // Returns the value of a name, of an index, or of a function of loops and stages.
  StatusOr<int64_t> Leaf(const Expression& e) {
    if (e.kind == ExpressionKind::kCall) return LoopFunction(e);
    if (e.kind == ExpressionKind::kName) {
      if (e.text == "true" || e.text == "false") return e.text == "true";
      if (const auto found = values_.find(e.text); found != values_.end()) {
        if (const auto* number = std::get_if<int64_t>(&found->second.is)) return *number;
        if (const auto* of_knobs = std::get_if<Expression>(&found->second.is))
          return Number(*of_knobs);
      }
    }
    const Entity* entity = collects() ? nullptr : config_->Find(e.text);
    if (entity == nullptr) return InvalidArgument("the value of {} is not known here", e.text);
    return KnobNumber(e, *entity, [this](const Expression& inner) { return Leaf(inner); });
  }

  StatusOr<int64_t> LoopFunction(const Expression& e) {
    int64_t value = 0;
    if (e.text == "computed") {
      value = writer_.IsComputed(StageOf(e.args[0])) ? 1 : 0;
    } else {
      KILN_ASSIGN_OR_RETURN(const LoopRef loop, LoopOf(e.args[0]));
      value = writer_.Extent(loop);
    }
    KILN_RETURN_IF_ERROR(writer_.status());
    return value;
  }

  StatusOr<int64_t> Number(const Expression& e) {
    return Evaluate(e, [this](const Expression& leaf) { return Leaf(leaf); });
  }

  StatusOr<int> Small(const Expression& e) {
    KILN_ASSIGN_OR_RETURN(const int64_t number, Number(e));
    if (number >= INT32_MIN && number <= INT32_MAX) return static_cast<int>(number);
    return AtPosition(e.at, InvalidArgument("{} is too large", number));
  }

  bool IsOfKnob(const Expression& e) const {
    if (e.kind != ExpressionKind::kName && e.kind != ExpressionKind::kIndex) return false;
    return space_.Find(e.text) >= 0;
  }

  // Counts the operations, because a `let` of a `let` of knobs could grow without end.
  static size_t NodesOf(const Expression& e) {
    size_t nodes = 1;
    for (const Expression& arg : e.args) nodes += NodesOf(arg);
    return nodes;
  }
  static Status CheckSize(const Expression& e) {
    constexpr size_t kMax = 10'000;
    if (NodesOf(e) <= kMax) return OkStatus();
    return AtPosition(e.at, InvalidArgument("with what its names stand for the expression has more "
                                            "than {} operations",
                                            kMax));
  }

  // Returns the expression with everything but knobs replaced by numbers.
  StatusOr<Expression> Fold(const Expression& e) {
    if (!collects()) {
      KILN_ASSIGN_OR_RETURN(const int64_t number, Number(e));
      return Expression{.number = number, .at = e.at};
    }
    if (e.is_name()) {
      const auto found = values_.find(e.text);
      if (found != values_.end() && std::holds_alternative<Expression>(found->second.is))
        return std::get<Expression>(found->second.is);
    }
    const bool of_loops = e.kind == ExpressionKind::kCall && !IsNumericFunction(e.text);
    if (of_loops || (e.args.empty() && !IsOfKnob(e))) {
      KILN_ASSIGN_OR_RETURN(const int64_t number, Number(e));
      return Expression{.number = number, .at = e.at};
    }
    Expression folded = e;
    for (Expression& arg : folded.args) {
      KILN_ASSIGN_OR_RETURN(arg, Fold(arg));
    }
    const bool known = !IsOfKnob(e) && std::ranges::all_of(folded.args, [](const Expression& arg) {
      return arg.kind == ExpressionKind::kNumber;
    });
    if (!known) return folded;
    KILN_ASSIGN_OR_RETURN(const int64_t number, Number(folded));
    return Expression{.number = number, .at = e.at};
  }

  // ---- steps

  StageRef StageOf(const Expression& e) const { return std::get<StageRef>(values_.at(e.text).is); }

  StatusOr<LoopRef> LoopOf(const Expression& e) {
    if (e.is_name()) return std::get<LoopRef>(values_.at(e.text).is);
    KILN_ASSIGN_OR_RETURN(const int64_t number, Number(e.args[0]));
    const int64_t loops = std::ssize(e.args) - 1;
    if (number >= 0 && number < loops) return LoopOf(e.args[static_cast<size_t>(number) + 1]);
    return AtPosition(e.at, InvalidArgument("loop {} of {} loops is chosen, expected 0 to {}",
                                            number, loops, loops - 1));
  }

  StatusOr<std::vector<LoopRef>> LoopsOf(const Statement& s, size_t first = 0) {
    std::vector<LoopRef> loops;
    for (size_t i = first; i < s.args.size(); ++i) {
      KILN_ASSIGN_OR_RETURN(const LoopRef loop, LoopOf(s.args[i]));
      loops.push_back(loop);
    }
    return loops;
  }

  // Returns the value of a knob, or null if there is no configuration.
  template <typename EntityT>
  const EntityT* EntityOf(const Expression& e) const {
    const Entity* entity = e.is_name() && !collects() ? config_->Find(e.text) : nullptr;
    return entity == nullptr ? nullptr : std::get_if<EntityT>(entity);
  }

  Status Name(const Statement& s, const std::vector<LoopRef>& loops) {
    if (!writer_.status().ok()) return OkStatus();  // Run reports it
    if (loops.size() != s.names.size())
      return AtPosition(s.at, InvalidArgument("{} gives {} loops, found {} names", s.word,
                                              loops.size(), s.names.size()));
    for (size_t i = 0; i < loops.size(); ++i) values_[s.names[i]] = {loops[i]};
    return OkStatus();
  }

  Status RunStep(const Statement& s) {
    if (s.condition) {
      KILN_ASSIGN_OR_RETURN(const int64_t holds, Number(*s.condition));
      if (holds == 0) return OkStatus();
    }
    static constexpr std::pair<std::string_view, Status (Interpreter::*)(const Statement&)>
        kSteps[] = {{"axes", &Interpreter::Axes},
                    {"reduce_axes", &Interpreter::ReduceAxes},
                    {"split", &Interpreter::Split},
                    {"split_parts", &Interpreter::SplitParts},
                    {"fuse", &Interpreter::Fuse},
                    {"reorder", &Interpreter::Reorder},
                    {"unroll", &Interpreter::Unroll},
                    {"vectorize", &Interpreter::Vectorize},
                    {"parallel", &Interpreter::Parallel},
                    {"bind", &Interpreter::Bind},
                    {"annotate", &Interpreter::AnnotateLoops},
                    {"fetch_by_threads", &Interpreter::FetchByThreads},
                    {"compute_at", &Interpreter::ComputeAt},
                    {"compute_root", &Interpreter::ComputeRoot},
                    {"inline", &Interpreter::Inline},
                    {"inline_others", &Interpreter::InlineOthers},
                    {"cache_read", &Interpreter::CacheRead},
                    {"cache_write", &Interpreter::CacheWrite},
                    {"accumulator", &Interpreter::Accumulator},
                    {"rfactor", &Interpreter::Rfactor},
                    {"hint", &Interpreter::SetHint},
                    {"storage_align", &Interpreter::StorageAlign},
                    {"layout", &Interpreter::Layout},
                    {"buffering", &Interpreter::Buffering}};
    for (const auto& [word, run] : kSteps) {
      if (word == s.word) return (this->*run)(s);
    }
    return AtPosition(s.at, InvalidArgument("unknown step '{}'", s.word));
  }

  Status Axes(const Statement& s) { return Name(s, writer_.Axes(StageOf(s.args[0]))); }
  Status ReduceAxes(const Statement& s) { return Name(s, writer_.ReduceAxes(StageOf(s.args[0]))); }

  Status Split(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const LoopRef loop, LoopOf(s.args[0]));
    if (const auto* entity = EntityOf<SplitEntity>(s.args[1]))
      return Name(s, writer_.Split(loop, *entity));
    KILN_ASSIGN_OR_RETURN(std::vector<int64_t> lengths, Lengths(s));
    return Name(s, writer_.Split(loop, std::move(lengths)));
  }

  Status SplitParts(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const LoopRef loop, LoopOf(s.args[0]));
    KILN_ASSIGN_OR_RETURN(std::vector<int64_t> lengths, Lengths(s));
    return Name(s, writer_.Split(loop, std::move(lengths), /*inner_to_outer=*/false));
  }

  StatusOr<std::vector<int64_t>> Lengths(const Statement& s) {
    std::vector<int64_t> lengths;
    for (size_t i = 1; i < s.args.size(); ++i) {
      KILN_ASSIGN_OR_RETURN(const int64_t length, Number(s.args[i]));
      lengths.push_back(length);
    }
    return lengths;
  }

  Status Fuse(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, LoopsOf(s));
    return Name(s, {writer_.Fuse(loops)});
  }

  Status Reorder(const Statement& s) {
    const auto* entity = EntityOf<ReorderEntity>(s.args[0]);
    KILN_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, LoopsOf(s, entity == nullptr ? 0 : 1));
    if (entity == nullptr) {
      writer_.Reorder(loops);
    } else {
      writer_.Reorder(loops, *entity);
    }
    return OkStatus();
  }

  Status AnnotateAll(const Statement& s, schedule::Annotation annotation) {
    KILN_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, LoopsOf(s));
    for (const LoopRef& loop : loops) writer_.Annotate(loop, annotation);
    return OkStatus();
  }
  Status Unroll(const Statement& s) { return AnnotateAll(s, schedule::Annotation::kUnroll); }
  Status Vectorize(const Statement& s) { return AnnotateAll(s, schedule::Annotation::kVectorize); }
  Status Parallel(const Statement& s) { return AnnotateAll(s, schedule::Annotation::kParallel); }

  Status Bind(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const LoopRef loop, LoopOf(s.args[0]));
    std::vector<std::string_view> known;
    for (int i = 1; i <= static_cast<int>(schedule::Annotation::kCluster); ++i) {
      const auto annotation = static_cast<schedule::Annotation>(i);
      if (!schedule::IsBound(annotation)) continue;
      known.push_back(schedule::AnnotationName(annotation));
      if (known.back() != s.args[1].text) continue;
      writer_.Annotate(loop, annotation);
      return OkStatus();
    }
    return AtPosition(s.args[1].at, InvalidArgument("found {}, expected one of {}", s.args[1].text,
                                                    fmt::join(known, ", ")));
  }

  Status AnnotateLoops(const Statement& s) {
    const auto* entity = EntityOf<AnnotateEntity>(s.args[0]);
    KILN_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, LoopsOf(s, 1));
    if (entity == nullptr)
      return AtPosition(s.at, InvalidArgument("{} has no annotations", s.args[0].text));
    writer_.Annotate(loops, *entity);
    return OkStatus();
  }

  Status FetchByThreads(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(std::vector<int64_t> numbers, Lengths(s));
    writer_.FetchByThreads(StageOf(s.args[0]), numbers[0], std::span(numbers).subspan(1));
    return OkStatus();
  }

  Status ComputeAt(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const LoopRef loop, LoopOf(s.args[1]));
    writer_.ComputeAt(StageOf(s.args[0]), loop);
    return OkStatus();
  }
  Status ComputeRoot(const Statement& s) {
    writer_.ComputeRoot(StageOf(s.args[0]));
    return OkStatus();
  }
  Status Inline(const Statement& s) {
    for (const Expression& stage : s.args) writer_.Inline(StageOf(stage));
    return OkStatus();
  }
  Status InlineOthers(const Statement&) {
    writer_.InlineOthers();
    return OkStatus();
  }

  Status CacheRead(const Statement& s) {
    std::vector<StageRef> readers;
    for (size_t i = 2; i < s.args.size(); ++i) readers.push_back(StageOf(s.args[i]));
    values_[s.names[0]] = {writer_.CacheRead(StageOf(s.args[0]), s.args[1].text, readers)};
    return OkStatus();
  }
  Status CacheWrite(const Statement& s) {
    values_[s.names[0]] = {writer_.CacheWrite(StageOf(s.args[0]), s.args[1].text)};
    return OkStatus();
  }
  Status Accumulator(const Statement& s) {
    const auto [sums, output] = writer_.Accumulator(StageOf(s.args[0]));
    values_[s.names[0]] = {sums};
    values_[s.names[1]] = {output};
    return OkStatus();
  }
  Status Rfactor(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const LoopRef loop, LoopOf(s.args[0]));
    KILN_ASSIGN_OR_RETURN(const int position, Small(s.args[1]));
    values_[s.names[0]] = {writer_.Rfactor(loop, position)};
    return OkStatus();
  }

  Status SetHint(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const int value, Small(s.args[2]));
    std::vector<std::string_view> known;
    for (const ir::HintRow& row : ir::kHints) {
      known.push_back(row.pragma);
      if (row.pragma != s.args[1].text) continue;
      writer_.SetHint(StageOf(s.args[0]), row.hint, value);
      return OkStatus();
    }
    return AtPosition(s.args[1].at, InvalidArgument("unknown hint {}, expected one of {}",
                                                    s.args[1].text, fmt::join(known, ", ")));
  }

  Status StorageAlign(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const LoopRef loop, LoopOf(s.args[0]));
    KILN_ASSIGN_OR_RETURN(const int factor, Small(s.args[1]));
    KILN_ASSIGN_OR_RETURN(const int offset, Small(s.args[2]));
    writer_.StorageAlign(loop, factor, offset);
    return OkStatus();
  }
  Status Layout(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, LoopsOf(s));
    writer_.Layout(loops);
    return OkStatus();
  }
  Status Buffering(const Statement& s) {
    KILN_ASSIGN_OR_RETURN(const int depth, Small(s.args[1]));
    if (s.args.size() > 2 && s.args[2].text != "async")
      return AtPosition(s.args[2].at, InvalidArgument("expected async, found {}", s.args[2].text));
    writer_.Buffering(StageOf(s.args[0]), depth, s.args.size() > 2);
    return OkStatus();
  }

  const TemplateText& text_;
  const Config* const config_;
  ScheduleWriter writer_;
  ConfigSpace space_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace

StatusOr<TemplatePtr> TextTemplate::Parse(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(TemplateText parsed, ParseTemplate(text));
  return std::make_shared<TextTemplate>(std::move(parsed));
}

StatusOr<ConfigSpace> TextTemplate::Space(const dag::DagPtr& dag) const {
  return Interpreter(text_, dag, nullptr).Space();
}

StatusOr<Instance> TextTemplate::Instantiate(const dag::DagPtr& dag, const Config& config) const {
  return Interpreter(text_, dag, &config).Schedule();
}

}  // namespace kiln::search
