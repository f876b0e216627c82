// A knob: one dimension of a configuration space, a list of entities. Kinds, policies and the order
// of the entities are those of autotvm (TVM v0.8, python/tvm/autotvm/task/space.py), so that an
// index of an autotvm record line means the same here.
//
// Immutable; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "search/templates/entity.h"

namespace kiln::search {

// The way in which the factors of a split are found.
enum class SplitPolicy : uint8_t {
  kFactors,    // divisors of the extent
  kPower2,     // powers of two up to the extent
  kVerbose,    // both, in the order of CPython's sets
  kCandidate,  // the lists are given
};

struct SplitOptions {
  SplitPolicy policy = SplitPolicy::kFactors;
  int num_outputs = 2;
  int64_t max_factor = int64_t{1} << 31;
  // If true, only sizes are kept whose product divides the extent. If unset, that holds only for
  // kFactors.
  std::optional<bool> no_tail = {};
  std::vector<std::vector<int64_t>> candidates = {};  // for kCandidate
  // Leaves out the entities that it refuses. If unset, all stay.
  std::function<bool(std::span<const int64_t> sizes)> filter = {};
};

enum class ReorderPolicy : uint8_t {
  kIdentity,
  kAll,          // every permutation, in lexicographic order
  kIntervalAll,  // every permutation of the loops in [begin, end)
  kCandidate,    // the orders are given
  // Merges chains of spatial and reduce loops: next comes a loop of the chain with the most loops
  // left, or of the first such chain. The innermost spatial loops are merged with the reduction
  // (kInterleave), or stand inside it (kInterleaveCuda).
  kInterleave,
  kInterleaveCuda,
};

// Loops are given by numbers below the number of loops.
struct ReorderOptions {
  ReorderPolicy policy = ReorderPolicy::kAll;
  int begin = 0, end = 0;                             // for kIntervalAll
  std::vector<std::vector<int64_t>> candidates = {};  // for kCandidate
  std::vector<std::vector<int64_t>> spatial = {}, reduce = {};
};

// The most entities that a knob may have, and the most that may be looked at to find them.
inline constexpr int64_t kMaxKnobEntities = 1 << 20;
inline constexpr int64_t kMaxKnobDraws = 1 << 22;

class Knob {
 public:
  // InvalidArgument says what is wrong; a knob needs at least one entity and at most
  // kMaxKnobEntities.
  static StatusOr<Knob> Split(std::string name, int64_t extent, const SplitOptions& options);
  static StatusOr<Knob> Reorder(std::string name, int num_loops, const ReorderOptions& options);
  // `policy` is bind_gpu or bind_gpu_virtual, or words among none, unroll and vec, joined by '_'
  // ("try" stands for none). The words give every choice of one word for each loop, with vec at
  // most once.
  static StatusOr<Knob> Annotate(std::string name, int num_loops, std::string_view policy);
  // Has the policy locate_cache: every choice of num_anchors of the loops.
  static StatusOr<Knob> Locate(std::string name, int num_loops, int num_anchors);
  static StatusOr<Knob> Option(std::string name, std::vector<OptionEntity> values);

  const std::string& name() const { return name_; }
  const std::vector<Entity>& entities() const { return entities_; }
  int64_t size() const { return static_cast<int64_t>(entities_.size()); }
  // Prints the knob as autotvm does: "Split(policy=factors, product=512, num_outputs=4) len=220".
  std::string Description() const;

 private:
  Knob(std::string name, std::string what, std::vector<Entity> entities)
      : name_(std::move(name)), what_(std::move(what)), entities_(std::move(entities)) {}
  static StatusOr<Knob> Make(std::string name, std::string what, std::vector<Entity> entities);

  std::string name_, what_;
  std::vector<Entity> entities_;
};

// Parses "factors" and so on. InvalidArgument lists the known policies.
StatusOr<SplitPolicy> ParseSplitPolicy(std::string_view word);
StatusOr<ReorderPolicy> ParseReorderPolicy(std::string_view word);

}  // namespace kiln::search
