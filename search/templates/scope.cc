#include "search/templates/scope.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text/closest_names.h"
#include "search/templates/knob.h"

namespace kiln::search {
namespace {

using ExpressionKind = Expression::Kind;

template <typename... Args>
Status ErrorAt(const TextPosition& at, fmt::format_string<Args...> format, Args&&... args) {
  return AtPosition(at, InvalidArgument(format, std::forward<Args>(args)...));
}

bool IsKnob(Meaning meaning) {
  return meaning >= Meaning::kSplitKnob && meaning <= Meaning::kOptionKnob;
}

std::string_view Describe(Meaning meaning) {
  switch (meaning) {
    case Meaning::kStage:
      return "a stage";
    case Meaning::kLoop:
      return "a loop";
    case Meaning::kNumber:
    case Meaning::kKnobNumber:
      return "a number";
    case Meaning::kSplitKnob:
      return "a knob of a split";
    case Meaning::kReorderKnob:
      return "a knob of an order";
    case Meaning::kAnnotateKnob:
      return "a knob of annotations";
    case Meaning::kLocateKnob:
      return "a knob of places";
    case Meaning::kOptionKnob:
      return "a knob of an option";
    case Meaning::kWord:
      return "a word";
  }
  return "";
}

std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

std::vector<std::string_view> WordsOf(std::string_view signature) {
  return signature.empty() ? std::vector<std::string_view>() : SplitAt(signature, " ");
}

bool IsRepeated(std::string_view parameter) {
  return parameter == "stages" || parameter == "loops" || parameter == "numbers";
}

// Tells whether a call of so many arguments may have these parameters.
bool Fits(const std::vector<std::string_view>& parameters, size_t args) {
  const bool repeated = !parameters.empty() && IsRepeated(parameters.back());
  return repeated ? args >= parameters.size() : args == parameters.size();
}

const Expression* FindOption(const Statement& statement, std::string_view name) {
  for (const auto& [option, value] : statement.options) {
    if (option == name) return &value;
  }
  return nullptr;
}

Status CheckOptions(const Statement& statement, const std::vector<std::string>& known) {
  std::set<std::string> seen;
  for (const auto& [option, value] : statement.options) {
    if (!seen.insert(option).second) return ErrorAt(value.at, "option {} is given twice", option);
    if (std::ranges::find(known, option) != known.end()) continue;
    return ErrorAt(value.at, "unknown option '{}' of a {} knob, expected one of {}{}", option,
                   statement.word, fmt::join(known, ", "), DidYouMean(option, known));
  }
  return OkStatus();
}

StatusOr<std::string> WordOption(const Statement& statement, std::string_view name) {
  const Expression* value = FindOption(statement, name);
  if (value == nullptr)
    return ErrorAt(statement.at, "expected the option {} of the knob {}", name, statement.names[0]);
  if (!value->is_name())
    return ErrorAt(value->at, "expected a word as {}, found {}", name, PrintExpression(*value));
  return value->text;
}

Status CheckLabels(const std::vector<Expression>& labels, const std::set<std::string>& known) {
  for (const Expression& label : labels) {
    if (!label.is_name())
      return ErrorAt(label.at, "expected the name of a loop, found {}", PrintExpression(label));
    if (!known.empty() && !known.contains(label.text))
      return ErrorAt(label.at, "{} is none of the loops of the knob", label.text);
  }
  return OkStatus();
}

StatusOr<std::set<std::string>> LabelsOf(const Statement& statement) {
  KILN_RETURN_IF_ERROR(CheckLabels(statement.args, {}));
  std::set<std::string> labels;
  for (const Expression& label : statement.args) {
    if (!labels.insert(label.text).second)
      return ErrorAt(label.at, "loop {} is named twice", label.text);
  }
  if (labels.empty())
    return ErrorAt(statement.at, "expected the loops of the knob {}", statement.names[0]);
  return labels;
}

// Checks a list like [[a, b], [c]].
Status CheckListOfLists(const Expression& list) {
  const bool lists = list.kind == ExpressionKind::kList &&
                     std::ranges::all_of(list.args, [](const Expression& item) {
                       return item.kind == ExpressionKind::kList;
                     });
  if (lists) return OkStatus();
  return ErrorAt(list.at, "expected a list of lists, found {}", PrintExpression(list));
}

}  // namespace

const Meaning* Scope::Find(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : &found->second;
}

Status Scope::Define(const Statement& statement, const std::string& name, Meaning meaning) {
  const auto [entry, is_new] = names_.emplace(name, meaning);
  if (is_new) return OkStatus();
  const bool may_change = meaning == Meaning::kLoop || meaning == Meaning::kStage;
  if (!may_change || entry->second != meaning)
    return ErrorAt(statement.at, "{} stands for {} already, expected another name", name,
                   Describe(entry->second));
  return OkStatus();
}

Status Scope::Add(const Statement& statement) {
  const bool is_declaration = statement.kind == Statement::Kind::kKnob ||
                              statement.kind == Statement::Kind::kStage ||
                              statement.kind == Statement::Kind::kFilter;
  if (is_declaration && has_steps_)
    return ErrorAt(statement.at,
                   "stages, knobs and filters stand before the first step that changes the "
                   "schedule");
  switch (statement.kind) {
    case Statement::Kind::kStage:
      return AddStage(statement);
    case Statement::Kind::kLet:
      return AddLet(statement);
    case Statement::Kind::kKnob:
      return AddKnob(statement);
    case Statement::Kind::kFilter:
    case Statement::Kind::kRequire:
      return CheckNumber(statement.args[0], /*knobs=*/true);
    case Statement::Kind::kStep:
      return AddStep(statement);
  }
  return OkStatus();
}

Status Scope::AddStage(const Statement& statement) {
  std::vector<std::string> words;
  for (const Primitive& place : Places()) {
    words.emplace_back(place.word);
    if (place.word != statement.word) continue;
    KILN_RETURN_IF_ERROR(CheckCall(statement, place.parameters));
    return Define(statement, statement.names[0], Meaning::kStage);
  }
  return ErrorAt(statement.at, "unknown place '{}' of a stage, expected one of {}{}",
                 statement.word, fmt::join(words, ", "), DidYouMean(statement.word, words));
}

Status Scope::AddLet(const Statement& statement) {
  KILN_RETURN_IF_ERROR(CheckNumber(statement.args[0], /*knobs=*/true));
  return Define(statement, statement.names[0],
                DependsOnKnobs(statement.args[0]) ? Meaning::kKnobNumber : Meaning::kNumber);
}

Status Scope::AddKnob(const Statement& statement) {
  const std::string& name = statement.names[0];
  if (statement.word == "split") {
    KILN_RETURN_IF_ERROR(CheckSplitKnob(statement));
    return Define(statement, name, Meaning::kSplitKnob);
  }
  if (statement.word == "reorder") {
    KILN_RETURN_IF_ERROR(CheckReorderKnob(statement));
    return Define(statement, name, Meaning::kReorderKnob);
  }
  if (statement.word == "annotate") {
    KILN_RETURN_IF_ERROR(CheckAnnotateKnob(statement));
    const bool locates = *WordOption(statement, "policy") == "locate_cache";
    return Define(statement, name, locates ? Meaning::kLocateKnob : Meaning::kAnnotateKnob);
  }
  if (statement.word == "choice") {
    KILN_RETURN_IF_ERROR(CheckOptionKnob(statement));
    return Define(statement, name, Meaning::kOptionKnob);
  }
  const std::vector<std::string> known = {"split", "reorder", "annotate"};
  return ErrorAt(statement.at,
                 "unknown kind of knob '{}', expected one of {}, or a list of values{}",
                 statement.word, fmt::join(known, ", "), DidYouMean(statement.word, known));
}

Status Scope::CheckSplitKnob(const Statement& statement) const {
  KILN_RETURN_IF_ERROR(CheckOptions(
      statement, {"outputs", "policy", "max_factor", "no_tail", "candidate", "filter"}));
  if (statement.args.size() != 1)
    return ErrorAt(statement.at, "expected one loop or extent to split, found {}",
                   statement.args.size());
  const Expression& extent = statement.args[0];
  const Meaning* meaning = extent.is_name() ? Find(extent.text) : nullptr;
  if (meaning == nullptr || *meaning != Meaning::kLoop)
    KILN_RETURN_IF_ERROR(CheckNumber(extent, /*knobs=*/false));
  if (const Expression* policy = FindOption(statement, "policy")) {
    KILN_ASSIGN_OR_RETURN(const std::string word, WordOption(statement, "policy"));
    KILN_RETURN_IF_ERROR(AtPosition(policy->at, ParseSplitPolicy(word).status()));
    if (word == "candidate" && FindOption(statement, "candidate") == nullptr)
      return ErrorAt(policy->at, "policy candidate needs the option candidate=[[...], ...]");
  }
  const Expression* outputs = FindOption(statement, "outputs");
  if (outputs == nullptr)
    return ErrorAt(statement.at, "expected the option outputs of the knob {}", statement.names[0]);
  if (outputs->kind != ExpressionKind::kNumber || outputs->number < 2 || outputs->number > 16)
    return ErrorAt(outputs->at, "expected a number of loops from 2 to 16, found {}",
                   PrintExpression(*outputs));
  for (const char* option : {"max_factor", "no_tail"}) {
    if (const Expression* value = FindOption(statement, option))
      KILN_RETURN_IF_ERROR(CheckNumber(*value, /*knobs=*/false));
  }
  if (const Expression* candidates = FindOption(statement, "candidate")) {
    KILN_RETURN_IF_ERROR(CheckListOfLists(*candidates));
    for (const Expression& sizes : candidates->args) {
      for (const Expression& size : sizes.args)
        KILN_RETURN_IF_ERROR(CheckNumber(size, /*knobs=*/false));
    }
  }
  if (const Expression* filter = FindOption(statement, "filter"))
    return CheckNumber(*filter, /*knobs=*/false, /*sizes=*/true);
  return OkStatus();
}

Status Scope::CheckReorderKnob(const Statement& statement) const {
  KILN_RETURN_IF_ERROR(
      CheckOptions(statement, {"policy", "interval", "candidate", "spatial", "reduce"}));
  KILN_ASSIGN_OR_RETURN(const std::set<std::string> labels, LabelsOf(statement));
  KILN_ASSIGN_OR_RETURN(const std::string word, WordOption(statement, "policy"));
  KILN_ASSIGN_OR_RETURN(const ReorderPolicy policy, [&]() -> StatusOr<ReorderPolicy> {
    StatusOr<ReorderPolicy> parsed = ParseReorderPolicy(word);
    if (parsed.ok()) return parsed;
    return AtPosition(FindOption(statement, "policy")->at, parsed.status());
  }());
  for (const char* option : {"candidate", "spatial", "reduce"}) {
    const Expression* chains = FindOption(statement, option);
    if (chains == nullptr) continue;
    KILN_RETURN_IF_ERROR(CheckListOfLists(*chains));
    for (const Expression& chain : chains->args)
      KILN_RETURN_IF_ERROR(CheckLabels(chain.args, labels));
  }
  const auto needs = [&](const char* option) {
    return FindOption(statement, option) != nullptr
               ? OkStatus()
               : ErrorAt(statement.at, "policy {} needs the option {}", word, option);
  };
  switch (policy) {
    case ReorderPolicy::kIntervalAll: {
      KILN_RETURN_IF_ERROR(needs("interval"));
      const Expression& interval = *FindOption(statement, "interval");
      const bool two_numbers = interval.kind == ExpressionKind::kList &&
                               interval.args.size() == 2 &&
                               interval.args[0].kind == ExpressionKind::kNumber &&
                               interval.args[1].kind == ExpressionKind::kNumber;
      if (two_numbers) return OkStatus();
      return ErrorAt(interval.at, "expected an interval [begin, end], found {}",
                     PrintExpression(interval));
    }
    case ReorderPolicy::kCandidate:
      return needs("candidate");
    case ReorderPolicy::kInterleave:
    case ReorderPolicy::kInterleaveCuda:
      KILN_RETURN_IF_ERROR(needs("spatial"));
      return needs("reduce");
    default:
      return OkStatus();
  }
}

Status Scope::CheckAnnotateKnob(const Statement& statement) const {
  KILN_RETURN_IF_ERROR(CheckOptions(statement, {"policy", "num_anchor"}));
  KILN_RETURN_IF_ERROR(LabelsOf(statement).status());
  KILN_ASSIGN_OR_RETURN(const std::string policy, WordOption(statement, "policy"));
  const Expression* anchors = FindOption(statement, "num_anchor");
  if ((policy == "locate_cache") != (anchors != nullptr))
    return ErrorAt(statement.at, "the option num_anchor belongs to the policy locate_cache");
  return anchors == nullptr ? OkStatus() : CheckNumber(*anchors, /*knobs=*/false);
}

Status Scope::CheckOptionKnob(const Statement& statement) const {
  if (statement.args.empty())
    return ErrorAt(statement.at, "expected the values of the knob {}", statement.names[0]);
  for (const Expression& value : statement.args) {
    const bool is_flag = value.is_name() && (value.text == "true" || value.text == "false");
    if (is_flag) continue;
    KILN_RETURN_IF_ERROR(CheckNumber(value, /*knobs=*/false));
  }
  return OkStatus();
}

Status Scope::AddStep(const Statement& statement) {
  const Primitive* primitive = FindPrimitive(statement.word);
  if (primitive == nullptr)
    return ErrorAt(statement.at, "unknown step '{}', expected one of {}{}", statement.word,
                   fmt::join(PrimitiveWords(), ", "), DidYouMean(statement.word, PrimitiveWords()));
  if (statement.condition) {
    if (!statement.names.empty())
      return ErrorAt(statement.condition->at,
                     "a step that gives names has no condition: the names would mean nothing "
                     "without it");
    KILN_RETURN_IF_ERROR(CheckNumber(*statement.condition, /*knobs=*/true));
  }
  KILN_RETURN_IF_ERROR(CheckCall(statement, primitive->parameters));
  const std::vector<std::string_view> results = WordsOf(primitive->results);
  if (!Fits(results, statement.names.size()))
    return ErrorAt(statement.at, "{} gives {}, found {} names", statement.word,
                   results.empty() ? "nothing" : primitive->results, statement.names.size());
  has_steps_ = has_steps_ || !primitive->only_names;
  for (const std::string& name : statement.names)
    KILN_RETURN_IF_ERROR(
        Define(statement, name, results[0] == "stage" ? Meaning::kStage : Meaning::kLoop));
  return OkStatus();
}

// If there are several variants, returns the error of the last one, which is the plainest.
Status Scope::CheckCall(const Statement& statement, std::string_view parameters) const {
  Status error = OkStatus();
  for (const std::string_view variant : SplitAt(parameters, " or ")) {
    const std::vector<std::string_view> expected = WordsOf(variant);
    if (!Fits(expected, statement.args.size())) {
      error = ErrorAt(statement.at, "{} takes ({}), found {} arguments", statement.word,
                      fmt::join(WordsOf(parameters), " "), statement.args.size());
      continue;
    }
    error = OkStatus();
    for (size_t i = 0; i < statement.args.size() && error.ok(); ++i)
      error = CheckArgument(statement.args[i], expected[std::min(i, expected.size() - 1)]);
    if (error.ok()) return OkStatus();
  }
  return error;
}

Status Scope::CheckArgument(const Expression& arg, std::string_view parameter) const {
  if (parameter == "number" || parameter == "numbers") return CheckNumber(arg, /*knobs=*/true);
  if (parameter == "loop" || parameter == "loops") return CheckLoop(arg);
  if (parameter == "word") {
    if (arg.is_name()) return OkStatus();
    return ErrorAt(arg.at, "expected a word, found {}", PrintExpression(arg));
  }
  const Meaning expected = parameter == "split_knob"      ? Meaning::kSplitKnob
                           : parameter == "reorder_knob"  ? Meaning::kReorderKnob
                           : parameter == "annotate_knob" ? Meaning::kAnnotateKnob
                                                          : Meaning::kStage;
  const Meaning* meaning = arg.is_name() ? Find(arg.text) : nullptr;
  if (meaning != nullptr && *meaning == expected) return OkStatus();
  return ErrorAt(arg.at, "expected {}, found {}{}", Describe(expected), PrintExpression(arg),
                 meaning == nullptr ? "" : fmt::format(", {}", Describe(*meaning)));
}

Status Scope::CheckLoop(const Expression& arg) const {
  if (arg.kind == ExpressionKind::kCall && arg.text == "choose") {
    if (arg.args.size() < 2)
      return ErrorAt(arg.at, "choose takes (number loops), found {} arguments", arg.args.size());
    KILN_RETURN_IF_ERROR(CheckNumber(arg.args[0], /*knobs=*/true));
    for (size_t i = 1; i < arg.args.size(); ++i) KILN_RETURN_IF_ERROR(CheckLoop(arg.args[i]));
    return OkStatus();
  }
  const Meaning* meaning = arg.is_name() ? Find(arg.text) : nullptr;
  if (meaning != nullptr && *meaning == Meaning::kLoop) return OkStatus();
  std::vector<std::string> loops;
  for (const auto& [name, what] : names_) {
    if (what == Meaning::kLoop) loops.push_back(name);
  }
  return ErrorAt(arg.at, "expected a loop, found {}{}{}", PrintExpression(arg),
                 meaning == nullptr ? "" : fmt::format(", {}", Describe(*meaning)),
                 arg.is_name() ? DidYouMean(arg.text, loops) : "");
}

Status Scope::CheckNumber(const Expression& e, bool knobs, bool sizes) const {
  switch (e.kind) {
    case ExpressionKind::kNumber:
      return OkStatus();
    case ExpressionKind::kUnary:
    case ExpressionKind::kBinary:
      for (const Expression& arg : e.args) KILN_RETURN_IF_ERROR(CheckNumber(arg, knobs, sizes));
      return OkStatus();
    case ExpressionKind::kList:
      return ErrorAt(e.at, "expected a number, found a list");
    case ExpressionKind::kName: {
      if (e.text == "true" || e.text == "false") return OkStatus();
      const Meaning* meaning = Find(e.text);
      if (meaning == nullptr) {
        std::vector<std::string> names;
        for (const auto& [name, what] : names_) names.push_back(name);
        return ErrorAt(e.at, "nothing is called {}{}", e.text, DidYouMean(e.text, names));
      }
      const bool of_knob = *meaning == Meaning::kOptionKnob || *meaning == Meaning::kKnobNumber;
      if (of_knob && !knobs)
        return ErrorAt(e.at, "{} depends on knobs, whose values are not known here", e.text);
      if (of_knob || *meaning == Meaning::kNumber) return OkStatus();
      return ErrorAt(e.at, "expected a number, found {}, {}", e.text, Describe(*meaning));
    }
    case ExpressionKind::kIndex: {
      KILN_RETURN_IF_ERROR(CheckNumber(e.args[0], knobs, sizes));
      if (sizes && e.text == "size") return OkStatus();
      const Meaning* meaning = Find(e.text);
      const bool indexed = meaning != nullptr &&
                           (*meaning == Meaning::kSplitKnob || *meaning == Meaning::kLocateKnob);
      if (!indexed)
        return ErrorAt(e.at, "expected a knob of a split or of places before '[', found {}{}",
                       e.text, meaning == nullptr ? "" : fmt::format(", {}", Describe(*meaning)));
      if (!knobs) return ErrorAt(e.at, "the value of knob {} is not known here", e.text);
      return OkStatus();
    }
    case ExpressionKind::kCall:
      break;
  }
  if (IsNumericFunction(e.text)) {
    const bool fits = e.text == "ceil_div" ? e.args.size() == 2 : e.args.size() >= 2;
    if (!fits)
      return ErrorAt(e.at, "{} takes {} numbers, found {}", e.text,
                     e.text == "ceil_div" ? "two" : "two or more", e.args.size());
    for (const Expression& arg : e.args) KILN_RETURN_IF_ERROR(CheckNumber(arg, knobs, sizes));
    return OkStatus();
  }
  if (e.text == "extent" || e.text == "computed") {
    if (e.args.size() != 1)
      return ErrorAt(e.at, "{} takes one argument, found {}", e.text, e.args.size());
    return CheckArgument(e.args[0], e.text == "extent" ? "loop" : "stage");
  }
  const std::vector<std::string> known = {"min", "max", "ceil_div", "extent", "computed"};
  return ErrorAt(e.at, "unknown function '{}', expected one of {}{}", e.text,
                 fmt::join(known, ", "), DidYouMean(e.text, known));
}

bool Scope::DependsOnKnobs(const Expression& e) const {
  if (e.kind == ExpressionKind::kName || e.kind == ExpressionKind::kIndex) {
    const Meaning* meaning = Find(e.text);
    if (meaning != nullptr && (IsKnob(*meaning) || *meaning == Meaning::kKnobNumber)) return true;
  }
  return std::ranges::any_of(e.args, [&](const Expression& arg) { return DependsOnKnobs(arg); });
}

}  // namespace kiln::search
