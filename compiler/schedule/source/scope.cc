#include "compiler/schedule/source/scope.h"

#include <algorithm>

#include "base/text/closest_names.h"
#include "compiler/schedule/source/names.h"

namespace kiln::schedule {

SourceScope::SourceScope(const State& state) : state_(state) {
  const SourceNames names(state);
  for (int i = 0; i < state.num_stages(); ++i) {
    stages_.push_back({i});
    order_.push_back(i);
    things_.emplace(names.Stage(i), Thing{i});
  }
}

StatusOr<SourceScope::Thing> SourceScope::Find(const SourceToken& name,
                                               std::string_view what) const {
  const auto found = things_.find(std::string(name.text));
  if (found != things_.end()) return found->second;
  constexpr size_t kMaxCompared = 2000;
  std::vector<std::string> known;
  for (const auto& [other, thing] : things_) {
    if (known.size() < kMaxCompared) known.push_back(other);
  }
  std::ranges::sort(known);
  return SourceErrorAt(name, fmt::format("expected {}, found '{}', which is no name here{}", what,
                                         name.text, DidYouMean(name.text, known)));
}

StatusOr<int> SourceScope::Stage(const SourceToken& name) const {
  KILN_ASSIGN_OR_RETURN(const Thing thing, Find(name, "the name of a stage"));
  if (!thing.is_stage()) {
    return SourceErrorAt(name, fmt::format("expected the name of a stage, found '{}', a loop of {}",
                                           name.text, StageName(stages_[thing.stage].number)));
  }
  return stages_[thing.stage].number;
}

StatusOr<int> SourceScope::Loop(const SourceToken& name, int stage) const {
  std::string found;
  const auto known = things_.find(std::string(name.text));
  const Thing thing = known != things_.end() ? known->second : Thing{};
  const Known owner = thing.stage >= 0 ? stages_[thing.stage] : Known{};
  if (known == things_.end()) {
    found = fmt::format("'{}', which is no name here", name.text);
  } else if (thing.is_stage()) {
    found = fmt::format("'{}', a stage", name.text);
  } else if (owner.number != stage) {
    found = fmt::format("'{}', a loop of {}", name.text, StageName(owner.number));
  } else if (thing.generation != owner.generation) {
    found = fmt::format("'{}', which a later step has replaced", name.text);
  } else {
    const std::vector<LoopIter>& loops = state_.stage(stage).loops;
    const auto at = std::ranges::find(loops, thing.iter, &LoopIter::iter);
    if (at != loops.end()) return static_cast<int>(at - loops.begin());
    found = fmt::format("'{}', which was {}", name.text,
                        splits_.contains(thing) ? "split" : "split or fused");
  }
  return SourceErrorAt(name, fmt::format("expected a loop of {}, which are {}, found {}",
                                         StageName(stage), LoopsOf(stage), found));
}

StatusOr<int> SourceScope::SplitOf(const SourceToken& name) const {
  constexpr std::string_view kExpected = "a loop that was split by factors or nparts";
  KILN_ASSIGN_OR_RETURN(const Thing thing, Find(name, kExpected));
  const auto found = splits_.find(thing);
  if (found != splits_.end()) return found->second;
  return SourceErrorAt(name, fmt::format("expected {}, found '{}', {}", kExpected, name.text,
                                         thing.is_stage() ? "a stage" : "which was not"));
}

void SourceScope::BindStage(const SourceToken& name, int stage) {
  things_.insert_or_assign(std::string(name.text), Thing{order_[stage]});
}

void SourceScope::BindLoop(const SourceToken& name, int stage, int loop) {
  things_.insert_or_assign(std::string(name.text), LoopThing(stage, loop));
}

void SourceScope::NoteSplit(int stage, int loop, int step) {
  splits_.emplace(LoopThing(stage, loop), step);
}

void SourceScope::NoteInsertion(int position, std::span<const int> resets) {
  order_.insert(order_.begin() + position, static_cast<int>(stages_.size()));
  stages_.emplace_back();
  Number(position);
  for (const int reset : resets) ++stages_[order_[reset]].generation;
}

void SourceScope::NoteMove(int from, int to) {
  std::rotate(order_.begin() + to, order_.begin() + from, order_.begin() + from + 1);
  Number(to);
}

void SourceScope::Number(int first) {
  for (int i = first; i < static_cast<int>(order_.size()); ++i) stages_[order_[i]].number = i;
}

SourceScope::Thing SourceScope::LoopThing(int stage, int loop) const {
  const int identity = order_[stage];
  return {identity, stages_[identity].generation, state_.stage(stage).loops[loop].iter};
}

std::string SourceScope::LoopsOf(int stage) const {
  const int count = static_cast<int>(state_.stage(stage).loops.size());
  if (count == 0) return "none";
  std::map<Thing, std::string> names;
  for (const auto& [name, thing] : things_) {
    if (thing.stage != order_[stage]) continue;
    std::string& known = names[thing];
    if (known.empty() || name < known) known = name;
  }
  std::string list;
  for (int i = 0; i < count; ++i) {
    const auto found = names.find(LoopThing(stage, i));
    if (i > 0) list += ", ";
    list += found != names.end()
                ? found->second
                : fmt::format("loop {} (without a name: s[{}].axes gives them some)", i,
                              StageName(stage));
    if (found == names.end()) break;
  }
  return list;
}

std::string SourceScope::StageName(int stage) const {
  std::string best;
  for (const auto& [name, thing] : things_) {
    if (thing == Thing{order_[stage]} && (best.empty() || name < best)) best = name;
  }
  return best.empty() ? fmt::format("stage {}", stage) : best;
}

}  // namespace kiln::schedule
