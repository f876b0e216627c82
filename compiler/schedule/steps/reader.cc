#include "compiler/schedule/steps/reader.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "compiler/dag/limits.h"

namespace kiln::schedule {

void StepReader::SkipBlanks() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
}

bool StepReader::TryTake(char c) {
  SkipBlanks();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool StepReader::AtEnd() {
  SkipBlanks();
  return at_ == text_.size();
}

const Status& StepReader::Fail(std::string_view expected) {
  if (!status_.ok()) return status_;
  SkipBlanks();
  if (at_ >= text_.size()) {
    status_ = InvalidArgument("the text ends where {} was expected", expected);
    return status_;
  }
  constexpr size_t kShown = 16;
  std::string found(text_.substr(at_, kShown));
  for (char& c : found) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  }
  if (text_.size() - at_ > kShown) found += "...";
  status_ = InvalidArgument("found '{}' at byte {}, expected {}", found, at_, expected);
  return status_;
}

bool StepReader::HasNext() {
  SkipBlanks();
  return status_.ok() && at_ < text_.size() && text_[at_] == ',';
}

bool StepReader::NextItem(std::string_view what) {
  if (!status_.ok()) return false;
  if (item_++ > 0 && !TryTake(',')) {
    Fail(fmt::format("',' and item {} ({})", item_ - 1, what));
    return false;
  }
  SkipBlanks();
  return true;
}

int64_t StepReader::Integer(std::string_view what, int64_t lowest, int64_t highest) {
  SkipBlanks();
  int64_t value = 0;
  const char* const begin = text_.data() + at_;
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  const bool fraction = stop != end && (*stop == '.' || *stop == 'e' || *stop == 'E');
  if (error != std::errc() || fraction || value < lowest || value > highest) {
    Fail(fmt::format("{} as an integer from {} to {}", what, lowest, highest));
    return 0;
  }
  at_ = stop - text_.data();
  return value;
}

template <typename T>
std::vector<T> StepReader::List(std::string_view what, int64_t lowest, int64_t highest, int most) {
  if (!NextItem(what)) return {};
  if (!TryTake('[')) {
    Fail(fmt::format("{} as a list of integers", what));
    return {};
  }
  if (TryTake(']')) return {};
  // Values are gathered here, so that the result is allocated once, with the right size.
  absl::InlinedVector<T, 32> values;
  do {
    if (values.size() == static_cast<size_t>(most)) {
      Fail(fmt::format("the end of {}, which has {} items, the most there may be", what, most));
      return {};
    }
    values.push_back(static_cast<T>(Integer(what, lowest, highest)));
    if (!status_.ok()) return {};
  } while (TryTake(','));
  if (!TryTake(']')) Fail(fmt::format("',' or ']' in {}", what));
  return std::vector<T>(values.begin(), values.end());
}

int StepReader::Int(std::string_view what) {
  if (!NextItem(what)) return 0;
  return static_cast<int>(
      Integer(what, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

int64_t StepReader::Int64(std::string_view what) {
  if (!NextItem(what)) return 0;
  return Integer(what, 0, std::numeric_limits<int64_t>::max());
}

bool StepReader::Flag(std::string_view what) {
  if (!NextItem(what)) return false;
  return Integer(what, 0, 1) == 1;
}

std::vector<int> StepReader::Ints(std::string_view what) {
  return List<int>(what, std::numeric_limits<int>::min(), std::numeric_limits<int>::max(),
                   dag::kMaxOperators);
}

std::vector<int64_t> StepReader::Int64s(std::string_view what) {
  return List<int64_t>(what, std::numeric_limits<int64_t>::min(),
                       std::numeric_limits<int64_t>::max(), dag::kMaxStageLoops);
}

std::string_view StepReader::Text(std::string_view what) {
  if (!NextItem(what)) return {};
  if (!TryTake('"')) {
    Fail(fmt::format("{} as a string", what));
    return {};
  }
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] == '\\' || static_cast<unsigned char>(text_[at_]) < 0x20) {
      Fail(fmt::format("{} without escapes and control characters", what));
      return {};
    }
    ++at_;
  }
  if (at_ == text_.size()) {
    Fail(fmt::format("the closing quote of {}", what));
    return {};
  }
  ++at_;
  return text_.substr(begin, at_ - 1 - begin);
}

}  // namespace kiln::schedule
