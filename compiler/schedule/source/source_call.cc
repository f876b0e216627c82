#include "compiler/schedule/source/source_call.h"

namespace kiln::schedule {
namespace {

const char* KindText(SourceValue::Kind kind) {
  switch (kind) {
    case SourceValue::kName:
      return "a name";
    case SourceValue::kInt:
      return "a number";
    case SourceValue::kText:
      return "a text";
    case SourceValue::kBool:
      return "True or False";
    case SourceValue::kList:
      return "a list";
  }
  return "";
}

std::string FoundText(const SourceValue& value) {
  if (value.kind == SourceValue::kList) return "a list";
  if (value.kind == SourceValue::kInt) return fmt::format("{}", value.number);
  if (value.kind == SourceValue::kText) return fmt::format("\"{}\"", value.at.text);
  return fmt::format("'{}'", value.at.text);
}

}  // namespace

SourceCall::SourceCall(const SourceStatement& statement, const SourceScope& scope,
                       const State& state)
    : statement_(statement),
      scope_(scope),
      state_(state),
      taken_(statement.arguments.size(), false) {
  if (statement.stage) stage_ = Take(scope.Stage(*statement.stage));
}

void SourceCall::Note(const Status& status) {
  if (status_.ok()) status_ = status;
}

template <typename T>
T SourceCall::Take(StatusOr<T> found) {
  if (found.ok()) return *std::move(found);
  Note(found.status());
  return T();
}

void SourceCall::Fail(std::string_view expected) {
  Note(SourceErrorAt(statement_.word,
                     fmt::format("{}: expected {}", statement_.word.text, expected)));
}

bool SourceCall::HasNext() const {
  return next_ < statement_.arguments.size() && !statement_.arguments[next_].keyword;
}

// Returns null, with an error noted, if there is no next argument of this kind.
const SourceValue* SourceCall::Next(std::string_view what, SourceValue::Kind kind) {
  if (!status_.ok()) return nullptr;
  if (!HasNext()) {
    Fail(fmt::format("{} as argument {}, found {} arguments before words", what, next_ + 1, next_));
    return nullptr;
  }
  const SourceValue& value = statement_.arguments[next_].value;
  if (value.kind != kind) {
    Note(SourceErrorAt(value.at, fmt::format("expected {} ({}), found {}", what, KindText(kind),
                                             FoundText(value))));
    return nullptr;
  }
  taken_[next_++] = true;
  return &value;
}

int SourceCall::Stage(std::string_view what) {
  const SourceValue* value = Next(what, SourceValue::kName);
  return value != nullptr ? Take(scope_.Stage(value->at)) : 0;
}

int SourceCall::Loop(std::string_view what, int stage) {
  const SourceValue* value = Next(what, SourceValue::kName);
  return value != nullptr ? Take(scope_.Loop(value->at, stage)) : 0;
}

std::vector<int> SourceCall::Loops(std::string_view what) {
  std::vector<int> loops;
  while (ok() && HasNext()) loops.push_back(Loop(what));
  return loops;
}

int64_t SourceCall::Number(const SourceValue& value, std::string_view what, int64_t lowest,
                           int64_t highest) {
  if (value.kind == SourceValue::kInt && value.number >= lowest && value.number <= highest)
    return value.number;
  Note(SourceErrorAt(value.at, fmt::format("expected {} from {} to {}, found {}", what, lowest,
                                           highest, FoundText(value))));
  return 0;
}

int64_t SourceCall::Int(std::string_view what, int64_t lowest, int64_t highest) {
  const SourceValue* value = Next(what, SourceValue::kInt);
  return value != nullptr ? Number(*value, what, lowest, highest) : 0;
}

std::vector<int> SourceCall::Ints(std::string_view what, int lowest, int highest) {
  std::vector<int> numbers;
  while (ok() && HasNext()) numbers.push_back(static_cast<int>(Int(what, lowest, highest)));
  return numbers;
}

std::vector<int> SourceCall::Stages(std::string_view what) {
  std::vector<int> stages;
  const SourceValue* value = Next(what, SourceValue::kList);
  if (value == nullptr) return stages;
  for (const SourceValue& item : value->items) {
    if (item.kind != SourceValue::kName) {
      Note(SourceErrorAt(item.at,
                         fmt::format("expected the name of a stage, found {}", FoundText(item))));
    } else {
      stages.push_back(Take(scope_.Stage(item.at)));
    }
  }
  return stages;
}

std::string_view SourceCall::Text(std::string_view what) {
  const SourceValue* value = Next(what, SourceValue::kText);
  return value != nullptr ? value->at.text : std::string_view();
}

bool SourceCall::Has(std::string_view word) const {
  for (const SourceArgument& argument : statement_.arguments) {
    if (argument.keyword && argument.keyword->text == word) return true;
  }
  return false;
}

// Returns null, with an error noted, if the argument is missing or of another kind.
const SourceValue* SourceCall::Of(std::string_view word, std::string_view what,
                                  SourceValue::Kind kind) {
  if (!status_.ok()) return nullptr;
  for (size_t i = 0; i < statement_.arguments.size(); ++i) {
    const SourceArgument& argument = statement_.arguments[i];
    if (taken_[i] || !argument.keyword || argument.keyword->text != word) continue;
    taken_[i] = true;
    if (argument.value.kind == kind) return &argument.value;
    Note(SourceErrorAt(argument.value.at, fmt::format("expected {}={}, found {}", word, what,
                                                      FoundText(argument.value))));
    return nullptr;
  }
  Fail(fmt::format("{}={}", word, what));
  return nullptr;
}

int64_t SourceCall::IntOf(std::string_view word, int64_t lowest, int64_t highest) {
  const SourceValue* value = Of(word, "NUMBER", SourceValue::kInt);
  return value != nullptr ? Number(*value, word, lowest, highest) : 0;
}

std::vector<int64_t> SourceCall::IntsOf(std::string_view word, int64_t lowest, int64_t highest) {
  for (const SourceArgument& argument : statement_.arguments) {
    if (argument.keyword && argument.keyword->text == word &&
        argument.value.kind == SourceValue::kInt)
      return {IntOf(word, lowest, highest)};
  }
  std::vector<int64_t> numbers;
  const SourceValue* value = Of(word, "[NUMBER, ...]", SourceValue::kList);
  if (value == nullptr) return numbers;
  for (const SourceValue& item : value->items)
    numbers.push_back(Number(item, word, lowest, highest));
  return numbers;
}

bool SourceCall::FlagOf(std::string_view word) {
  const SourceValue* value = Of(word, "True or False", SourceValue::kBool);
  return value != nullptr && value->number != 0;
}

int SourceCall::SplitOf(std::string_view word) {
  const SourceValue* value = Of(word, "LOOP", SourceValue::kName);
  return value != nullptr ? Take(scope_.SplitOf(value->at)) : 0;
}

std::vector<int> SourceCall::SplitsOf(std::string_view word) {
  std::vector<int> steps;
  const SourceValue* value = Of(word, "[LOOP, ...]", SourceValue::kList);
  if (value == nullptr) return steps;
  for (const SourceValue& item : value->items) {
    if (item.kind != SourceValue::kName) {
      Note(SourceErrorAt(item.at,
                         fmt::format("expected the name of a loop, found {}", FoundText(item))));
    } else {
      steps.push_back(Take(scope_.SplitOf(item.at)));
    }
  }
  return steps;
}

Status SourceCall::Finish() {
  for (size_t i = 0; ok() && i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    const SourceArgument& argument = statement_.arguments[i];
    Note(SourceErrorAt(
        argument.keyword.value_or(argument.value.at),
        fmt::format("{}: this argument is one too many{}", statement_.word.text,
                    argument.keyword ? fmt::format(", or has a word '{}' that is not known here "
                                                   "or was there before",
                                                   argument.keyword->text)
                                     : std::string())));
  }
  const size_t expected = results_.new_stage >= 0 ? 1 : static_cast<size_t>(results_.count);
  if (ok() && statement_.results.size() != expected) {
    const SourceToken& at =
        statement_.results.empty() ? statement_.word : statement_.results.front();
    Note(SourceErrorAt(
        at, fmt::format("{} gives {} {}: expected so many names before '=', found {}",
                        statement_.word.text, expected,
                        results_.new_stage >= 0 ? "stage" : (expected == 1 ? "loop" : "loops"),
                        statement_.results.size())));
  }
  return status_;
}

}  // namespace kiln::schedule
