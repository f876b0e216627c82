#include "search/space/round_report.h"

#include <fmt/format.h>

namespace kiln::search {

std::string_view DropName(Drop drop) {
  static constexpr std::array<std::string_view, kNumDrops> kNames = {
      "illegal steps", "threads beyond limits",  "too much shared memory",
      "duplicate",     "already tried",          "lowering refused",
      "low score",     "similar to a better one"};
  return kNames[static_cast<int>(drop)];
}

std::string_view PartName(Part part) {
  static constexpr std::array<std::string_view, kNumParts> kNames = {
      "sample", "mutate and replay", "lower", "features", "predict", "train"};
  return kNames[static_cast<int>(part)];
}

void RoundReport::AddDrop(Drop drop, const Status& reason) {
  ++count(drop);
  std::string& example = drop_examples[static_cast<int>(drop)];
  if (example.empty()) example = std::string(Message(reason));
}

std::string PrintRound(const RoundReport& r) {
  std::string text = fmt::format(
      "round {}: {} proposed ({} by chance, {} near elites), ranked by {}; {} sketches, {} "
      "sampled, {} mutated, {} "
      "crossed, {} evaluated\n",
      r.round, r.proposed, r.proposed_by_chance, r.proposed_near_elites,
      r.ranked_by.empty() ? "chance" : r.ranked_by, r.sketches, r.sampled, r.mutated, r.crossed,
      r.evaluated);
  for (int i = 0; i < kNumDrops; ++i) {
    if (r.dropped[i] == 0) continue;
    text += fmt::format("  dropped {}: {}", r.dropped[i], DropName(static_cast<Drop>(i)));
    if (!r.drop_examples[i].empty()) text += fmt::format(", for example {}", r.drop_examples[i]);
    text += '\n';
  }
  text += fmt::format("  {:.3f} s;", r.wall_s);
  for (int i = 0; i < kNumParts; ++i)
    text += fmt::format(" {} {:.3f}", PartName(static_cast<Part>(i)), r.part_s[i]);
  return text + " CPU s\n";
}

}  // namespace kiln::search
