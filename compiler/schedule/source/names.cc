#include "compiler/schedule/source/names.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace kiln::schedule {
namespace {

// A fused loop's name is made of many names, and so are the names of its pieces. Longer names
// become numbers.
constexpr size_t kLongestPart = 64;

// Words with another meaning in such a text or in Python.
constexpr std::string_view kReserved[] = {
    "s",     "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",
    "break", "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",
    "for",   "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal",
    "not",   "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

// Replaces every run of other characters by one "_", and drops it at the end.
std::string Identifier(std::string_view name) {
  std::string result;
  for (char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      result += c;
    } else if (!result.empty() && result.back() != '_') {
      result += '_';
    }
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0]))) {
    result.insert(result.begin(), '_');
  }
  return result;
}

void AppendName(std::string& list, const std::string& name) {
  if (!list.empty()) list += ", ";
  list += name;
}

}  // namespace

SourceNames::SourceNames(const State& state, std::span<const std::string_view> reserved) {
  for (std::string_view word : kReserved) taken_.emplace(word);
  for (std::string_view word : reserved) taken_.emplace(word);
  stages_.resize(static_cast<size_t>(state.num_stages()));
  for (int i = 0; i < state.num_stages(); ++i) {
    stages_[i].name = Unique(Identifier(state.stage(i).op->name()));
  }
}

bool SourceNames::IsReserved(std::string_view word) {
  return std::find(std::begin(kReserved), std::end(kReserved), word) != std::end(kReserved);
}

std::string SourceNames::NameAxes(const schedule::Stage& stage, int number) {
  std::string list;
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i)
    AppendName(list, Give(number, stage.loops[i].iter, LoopName(stage, i)));
  return list;
}

std::string SourceNames::NamePieces(const schedule::Stage& stage, int number, int32_t parent,
                                    int loop, int pieces) {
  const std::string part = stages_[number].iters[parent].part;
  std::string list;
  for (int i = 0; i < pieces; ++i)
    AppendName(list, Give(number, stage.loops[loop + i].iter, fmt::format("{}_{}", part, i)));
  return list;
}

std::string SourceNames::NameFused(const schedule::Stage& stage, int number,
                                   const std::vector<int32_t>& parents, int loop) {
  std::string part;
  for (int32_t parent : parents) {
    if (part.size() > kLongestPart) break;
    if (!part.empty()) part += '_';
    part += stages_[number].iters[parent].part;
  }
  return Give(number, stage.loops[loop].iter, parents.empty() ? "unit" : part);
}

void SourceNames::InsertStage(const schedule::Stage& stage, int position) {
  StageNames names;
  names.name = Unique(Identifier(stage.op->name()));
  stages_.insert(stages_.begin() + position, std::move(names));
}

void SourceNames::MoveStage(int from, int to) {
  std::rotate(stages_.begin() + to, stages_.begin() + from, stages_.begin() + from + 1);
}

void SourceNames::DropLoops(const schedule::Stage& before, int number) {
  std::vector<LoopNames>& iters = stages_[number].iters;
  for (const LoopIter& loop : before.loops) taken_.erase(iters[loop.iter].name);
  iters.clear();
}

const std::string& SourceNames::Give(int stage, int32_t iter, std::string part) {
  if (part.size() > kLongestPart) part = fmt::format("loop_{}", iter);
  StageNames& names = stages_[stage];
  if (names.iters.size() <= static_cast<size_t>(iter)) names.iters.resize(iter + 1);
  LoopNames& loop = names.iters[iter];
  loop.name = Unique(Identifier(fmt::format("{}_{}", names.name, part)));
  loop.part = std::move(part);
  return loop.name;
}

std::string SourceNames::Unique(std::string name) {
  if (taken_.insert(name).second) return name;
  int& number = numbers_[name];
  while (true) {
    std::string numbered = fmt::format("{}_{}", name, ++number);
    if (taken_.insert(numbered).second) return numbered;
  }
}

}  // namespace kiln::schedule
