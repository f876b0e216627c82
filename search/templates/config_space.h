// A configuration space: named knobs in an order, as autotvm's ConfigSpace (TVM v0.8,
// python/tvm/autotvm/task/space.py). A template defines one for each computation; a point of it is
// a schedule.
//
// Indices are those of autotvm's records: the first knob changes fastest. Of knobs with d0, d1, ...
// values, index = k0 + d0 * (k1 + d1 * (k2 + ...)).
//
// Immutable once made; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "search/templates/entity.h"
#include "search/templates/knob.h"

namespace kiln::search {

// A point of a space: a value for each knob, in the order of the knobs.
struct Config {
  int64_t index = 0;
  std::vector<NamedEntity> entities;

  // Null: there is no such knob.
  const Entity* Find(std::string_view knob) const;
};

// How many configurations of a space are valid.
struct ValidCount {
  int64_t count = 0;
  bool is_exact = true;  // false: estimated from points at random
};

class ConfigSpace {
 public:
  // Is a configuration valid? The entities are in the order of the knobs.
  using Filter = std::function<bool(std::span<const Entity* const>)>;

  // Refuses a name that is there already, and more than 64 knobs, 2^20 values of all knobs together,
  // or 2^62 points.
  Status Add(Knob knob);
  Status Add(StatusOr<Knob> knob);  // of Knob::Split and so on; its error
  // A configuration that any of the filters refuses is not valid. Of knobs that were added before.
  void AddFilter(Filter filter) { filters_.push_back(std::move(filter)); }

  const std::vector<Knob>& knobs() const { return knobs_; }
  // -1: there is no such knob.
  int Find(std::string_view knob) const;
  // The number of indices; 1 without knobs.
  int64_t range() const { return range_; }
  bool has_filter() const { return !filters_.empty(); }

  // Valid ones among all. Up to 2^25 points each is looked at, a microsecond or less a point; of
  // more it is estimated.
  ValidCount CountValid() const;

  // The digits of an index, one for each knob. 0 <= index < range().
  std::vector<int> Digits(int64_t index) const;
  int64_t Index(std::span<const int> digits) const;
  bool IsValid(int64_t index) const;

  // 0 <= index < range().
  Config Get(int64_t index) const;
  // The index of these values. NotFound: which knob is missing, unknown, or has another value here.
  StatusOr<int64_t> IndexOf(std::span<const NamedEntity> entities) const;

  // Any valid index; nothing if none was found in many draws.
  std::optional<int64_t> Random(Rng& rng) const;
  // A valid neighbour at random: knobs drawn at random have new values, until the index is another
  // one. The same index if there is no other that was found in many draws.
  int64_t RandomWalk(int64_t index, Rng& rng) const;

  // As autotvm prints it:
  //   ConfigSpace (len=10454400, space_map=
  //      0 tile_f: Split(policy=factors, product=512, num_outputs=4) len=220
  //   )
  // With filters len counts the valid ones, and range_length follows it.
  std::string Print() const;

 private:
  std::vector<Knob> knobs_;
  std::vector<Filter> filters_;
  int64_t range_ = 1;
};

}  // namespace kiln::search
