#include "store/distill.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/json/json_cursor.h"
#include "store/record_order.h"

namespace kiln::store {
namespace {

// The parts of a record that Distill() compares.
struct Entry {
  // "": not known.
  std::string_view workload_id = {};
  std::string_view workload_key;
  std::string_view target;
  // The layout rewrite option.
  int64_t layout = 0;
  Rank rank = {};
};

bool IsRight(const Record& record) { return record.error == kNoError && !record.costs_s.empty(); }

// Returns the value of ` -name=value` in a target, "" if absent.
std::string_view TargetOption(std::string_view target, std::string_view name) {
  const std::string option = fmt::format(" -{}=", name);
  const size_t at = target.find(option);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = target.substr(at + option.size());
  return rest.substr(0, rest.find(' '));
}

void AddKeys(std::string_view comma_separated, std::vector<std::string>& keys) {
  while (!comma_separated.empty()) {
    const std::string_view key = comma_separated.substr(0, comma_separated.find(','));
    comma_separated.remove_prefix(std::min(comma_separated.size(), key.size() + 1));
    if (!key.empty() && std::find(keys.begin(), keys.end(), key) == keys.end()) {
      keys.emplace_back(key);
    }
  }
}

// Splits ["hash", args...] into hash and the text of args. A key of another form is all hash.
std::pair<std::string, std::string> SplitWorkloadKey(std::string_view workload_key) {
  JsonCursor json(workload_key);
  std::string args;
  auto parse = [&]() -> StatusOr<std::string> {
    KILN_RETURN_IF_ERROR(json.Expect('[', "a workload key"));
    KILN_ASSIGN_OR_RETURN(std::string hash, json.String("a hash"));
    KILN_ASSIGN_OR_RETURN(bool more, json.Next(']'));
    while (more) {
      KILN_ASSIGN_OR_RETURN(const std::string arg, json.Value("an argument"));
      args += arg + ", ";
      KILN_ASSIGN_OR_RETURN(more, json.Next(']'));
    }
    KILN_RETURN_IF_ERROR(json.ExpectEnd());
    return hash;
  };
  StatusOr<std::string> hash = parse();
  if (!hash.ok()) return {std::string(workload_key), ""};
  return {*std::move(hash), std::move(args)};
}

// Tells the computation of an entry. An entry without identity belongs to the computation of the
// other entries of its key, if these have only one.
class Computations {
 public:
  explicit Computations(const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      if (!entry.workload_id.empty()) ids_[entry.workload_key].insert(entry.workload_id);
    }
  }

  std::string_view Of(const Entry& entry) const {
    if (!entry.workload_id.empty()) return entry.workload_id;
    const auto found = ids_.find(entry.workload_key);
    return found != ids_.end() && found->second.size() == 1 ? *found->second.begin()
                                                            : std::string_view();
  }

 private:
  // Identities by key.
  std::map<std::string_view, std::set<std::string_view>> ids_;
};

// Numbers texts in the order in which they appear, starting anew for each prefix.
class AppearanceOrder {
 public:
  using Path = std::array<int, 5>;

  Path Of(const std::array<std::string, 5>& texts) {
    Path path;
    path.fill(-1);
    for (size_t i = 0; i < texts.size(); ++i) path[i] = Number(path, texts[i]);
    return path;
  }

 private:
  int Number(const Path& prefix, const std::string& text) {
    std::map<std::string, int>& numbers = numbers_[prefix];
    return numbers.try_emplace(text, static_cast<int>(numbers.size())).first->second;
  }

  std::map<Path, std::map<std::string, int>> numbers_;
};

std::vector<size_t> BestIndices(const std::vector<Entry>& entries) {
  AppearanceOrder order;
  const Computations computations(entries);
  std::map<AppearanceOrder::Path, size_t> best;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].rank.failed) continue;
    const auto [hash, args] = SplitWorkloadKey(entries[i].workload_key);
    const std::string layout = std::to_string(entries[i].layout);
    for (const std::string& key : TargetKeys(entries[i].target)) {
      const std::string id(computations.Of(entries[i]));
      auto [it, inserted] = best.try_emplace(order.Of({key, hash, args, id, layout}), i);
      if (!inserted && entries[i].rank < entries[it->second].rank) it->second = i;
    }
  }
  std::vector<size_t> indices;
  std::set<size_t> taken;
  for (const auto& [path, index] : best) {
    if (taken.insert(index).second) indices.push_back(index);
  }
  return indices;
}

}  // namespace

std::vector<std::string> TargetKeys(std::string_view target) {
  const std::string_view kind = target.substr(0, target.find(' '));
  std::vector<std::string> keys;
  AddKeys(TargetOption(target, "keys"), keys);
  AddKeys(TargetOption(target, "device"), keys);
  AddKeys(kind == "cuda" ? "cuda,gpu" : kind == "llvm" ? "cpu" : kind, keys);
  return keys;
}

std::string TargetModel(std::string_view target) {
  const std::string_view model = TargetOption(target, "model");
  return model == "unknown" ? "" : std::string(model);
}

std::vector<Record> Distill(std::span<const Record> records) {
  std::vector<Entry> entries;
  for (const Record& r : records) {
    entries.push_back({.workload_id = r.workload_id,
                       .workload_key = r.workload_key,
                       .target = r.target,
                       .layout = r.layout_rewrite_option,
                       .rank = RankOf(r)});
    entries.back().rank.failed = !IsRight(r);
  }
  std::vector<Record> picked;
  for (const size_t index : BestIndices(entries)) picked.push_back(records[index]);
  return picked;
}

// ---- records, one at a time -----------------------------------------------------------------

namespace {

// Joins texts of which none has a line feed.
std::string Joined(std::initializer_list<std::string_view> parts) {
  return fmt::format("{}", fmt::join(parts, "\n"));
}

// Returns about the memory that a record takes, its place in the map included.
size_t BytesOf(const Record& record) {
  constexpr size_t kPlace = 2048;
  return kPlace + record.workload_key.size() + record.target.size() + record.steps.size() +
         record.dag.size() + record.times.size() + record.device_state.size();
}

Status TooManyBest(size_t most_bytes) {
  return ResourceExhausted(
      "the best records of so many workloads take more than {} MiB; distill the log in parts",
      most_bytes >> 20);
}

}  // namespace

// Keeps the records of each hash, arguments, identity, target and layout option that may be chosen.
// Distill() would take only one record of the group, so it gets the chosen ones alone.
struct RecordDistiller::State {
  struct Kept {
    std::optional<Record> fastest = {};
    // All of them: a faster record with a wider interval may not differ from any of these.
    std::vector<Record> finalists = {};
    // Position of the group's first record without error.
    int64_t order = 0;

    // Returns the bytes by which the group has grown, modulo 2^64.
    size_t Take(const Record& record) {
      size_t grown = 0;
      if (record.confidence_s.has_value()) {
        finalists.push_back(record);
        grown += BytesOf(record);
      }
      if (fastest.has_value() && !BetterThan(record, *fastest)) return grown;
      if (fastest.has_value()) grown -= BytesOf(*fastest);
      fastest = record;
      return grown + BytesOf(record);
    }

    Record Chosen() {
      std::vector<Rival> rivals = {RivalOf(*fastest)};
      for (const Record& finalist : finalists) rivals.push_back(RivalOf(finalist));
      const int64_t id = ChooseRecord(rivals).id;
      const auto finalist = std::ranges::find(finalists, id, &Record::id);
      return std::move(id == fastest->id ? *fastest : *finalist);
    }
  };

  std::map<std::string, Kept> best;
  int64_t groups = 0;
  size_t bytes = 0;
};

RecordDistiller::RecordDistiller() : state_(std::make_unique<State>()) {}
RecordDistiller::~RecordDistiller() = default;

Status RecordDistiller::Add(const Record& record) {
  if (!IsRight(record)) return OkStatus();
  const auto [hash, args] = SplitWorkloadKey(record.workload_key);
  const std::string group = Joined({hash, args, record.workload_id, record.target,
                                    std::to_string(record.layout_rewrite_option)});
  auto [at, is_new] = state_->best.try_emplace(group);
  if (is_new) at->second.order = ++state_->groups;
  state_->bytes += at->second.Take(record);
  constexpr size_t kMax = LogDistiller::kMaxBytes;
  return state_->bytes <= kMax ? OkStatus() : TooManyBest(kMax);
}

std::vector<Record> RecordDistiller::Finish() {
  std::vector<State::Kept> kept;
  for (auto& [group, best] : state_->best) kept.push_back(std::move(best));
  std::ranges::stable_sort(kept, {}, &State::Kept::order);
  std::vector<Record> records;
  for (State::Kept& best : kept) records.push_back(best.Chosen());
  return Distill(records);
}

// ---- autotvm --------------------------------------------------------------------------------

struct AutotvmDistiller::State {
  struct Kept {
    AutotvmRecord record;
    int64_t order = 0;
  };

  std::map<std::string, std::shared_ptr<const Kept>> best;
  int64_t records = 0;
  size_t bytes = 0;
};

AutotvmDistiller::AutotvmDistiller() : state_(std::make_unique<State>()) {}
AutotvmDistiller::~AutotvmDistiller() = default;

Status AutotvmDistiller::Add(const AutotvmRecord& record) {
  const int64_t order = state_->records++;
  if (record.error != kNoError || record.costs_s.empty()) return OkStatus();
  std::vector<std::string> names;
  for (const std::string& key : TargetKeys(record.target)) names.push_back("key " + key);
  const std::string model = TargetModel(record.target);
  if (!model.empty()) names.push_back("model " + model);
  std::shared_ptr<const State::Kept> kept;
  constexpr size_t kPlace = 1024;
  const size_t bytes = kPlace + record.target.size() + record.args.size() + record.entities.size();
  for (const std::string& name : names) {
    auto& best = state_->best[Joined({name, AutotvmWorkload(record)})];
    if (best != nullptr && !(MeanCost(record) < MeanCost(best->record))) continue;
    if (kept == nullptr) kept = std::make_shared<State::Kept>(State::Kept{record, order});
    // Records of one workload have about the same length.
    if (best == nullptr) state_->bytes += bytes;
    best = kept;
  }
  constexpr size_t kMax = LogDistiller::kMaxBytes;
  return state_->bytes <= kMax ? OkStatus() : TooManyBest(kMax);
}

std::vector<AutotvmRecord> AutotvmDistiller::Finish() {
  std::map<int64_t, const AutotvmRecord*> by_order;
  for (const auto& [name, kept] : state_->best) by_order.emplace(kept->order, &kept->record);
  std::vector<AutotvmRecord> records;
  for (const auto& [order, record] : by_order) records.push_back(*record);
  return records;
}

// ---- logs -----------------------------------------------------------------------------------

struct LogDistiller::State {
  struct Kept {
    MeasureLogLine line;
    double mean_cost_s = 0;
  };

  AppearanceOrder order;
  std::map<AppearanceOrder::Path, std::shared_ptr<const Kept>> best;
  size_t bytes = 0;
};

namespace {

// Returns about the memory that a line takes, its place in the map included.
size_t BytesOf(const MeasureLogLine& line) {
  constexpr size_t kPlace = 1024;
  return kPlace + line.workload_key.size() + line.target.size() + line.steps_json.size() +
         line.costs_s.size() * sizeof(double);
}

}  // namespace

LogDistiller::LogDistiller() : state_(std::make_unique<State>()) {}
LogDistiller::~LogDistiller() = default;

Status LogDistiller::Add(MeasureLogLine line, size_t most_bytes) {
  if (line.error_no != kNoError || line.costs_s.empty()) return OkStatus();
  auto kept = std::make_shared<State::Kept>();
  kept->mean_cost_s = std::accumulate(line.costs_s.begin(), line.costs_s.end(), 0.0) /
                      static_cast<double>(line.costs_s.size());
  kept->line = std::move(line);
  const auto [hash, args] = SplitWorkloadKey(kept->line.workload_key);
  const std::string layout = std::to_string(kept->line.layout_rewrite_option.value_or(0));
  for (const std::string& key : TargetKeys(kept->line.target)) {
    auto& best = state_->best[state_->order.Of({key, hash, args, "", layout})];
    if (best != nullptr && !(kept->mean_cost_s < best->mean_cost_s)) continue;
    if (best != nullptr) state_->bytes -= BytesOf(best->line);
    state_->bytes += BytesOf(kept->line);
    best = kept;
  }
  return state_->bytes <= most_bytes ? OkStatus() : TooManyBest(most_bytes);
}

std::vector<MeasureLogLine> LogDistiller::Finish() {
  std::vector<MeasureLogLine> lines;
  std::set<const State::Kept*> taken;
  for (const auto& [path, kept] : state_->best) {
    if (taken.insert(kept.get()).second) lines.push_back(kept->line);
  }
  return lines;
}

}  // namespace kiln::store
