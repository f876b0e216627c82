// A configuration space: named knobs in a fixed order, like autotvm's ConfigSpace (TVM v0.8,
// python/tvm/autotvm/task/space.py). A template defines a space for each computation, and each
// point of the space is a schedule.
//
// Indices are those of autotvm's records: the first knob changes fastest. If the knobs have d0, d1,
// ... values, index = k0 + d0 * (k1 + d1 * (k2 + ...)).
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

#include "base/numbers/rng.h"
#include "base/status.h"
#include "search/templates/entity.h"
#include "search/templates/knob.h"

namespace kiln::search {

// A point of a space: a value for each knob, in the order of the knobs.
struct Config {
  int64_t index = 0;
  std::vector<NamedEntity> entities;

  // Returns null if there is no such knob.
  const Entity* Find(std::string_view knob) const;
};

// The number of valid configurations of a space.
struct ValidCount {
  int64_t count = 0;
  bool is_exact = true;  // false: estimated from random points
};

class ConfigSpace {
 public:
  // Tells whether a configuration is valid. The entities are in the order of the knobs.
  using Filter = std::function<bool(std::span<const Entity* const>)>;

  // Refuses a name that exists already, more than 64 knobs, more than 2^20 values of all knobs
  // together, and more than 2^62 points.
  Status Add(Knob knob);
  Status Add(StatusOr<Knob> knob);  // takes the result of Knob::Split and so on; returns its error
  // A configuration is invalid if any filter refuses it. Knobs that a filter reads are added before
  // it.
  void AddFilter(Filter filter) { filters_.push_back(std::move(filter)); }

  const std::vector<Knob>& knobs() const { return knobs_; }
  // Returns -1 if there is no such knob.
  int Find(std::string_view knob) const;
  // Returns the number of indices, which is 1 without knobs.
  int64_t range() const { return range_; }
  bool has_filter() const { return !filters_.empty(); }

  // Counts the valid points. Looks at each of up to 2^25 points, at a microsecond or less for each.
  // Estimates the number in larger spaces.
  ValidCount CountValid() const;

  // Returns the digits of an index, one for each knob. 0 <= index < range().
  std::vector<int> Digits(int64_t index) const;
  int64_t Index(std::span<const int> digits) const;
  bool IsValid(int64_t index) const;

  // Returns the configuration of an index. 0 <= index < range().
  Config Get(int64_t index) const;
  // Returns the index of these values. NotFound says which knob is missing, is unknown, or has no
  // such value here.
  StatusOr<int64_t> IndexOf(std::span<const NamedEntity> entities) const;

  // Returns a random valid index, or nothing if many draws found none.
  std::optional<int64_t> Random(Rng& rng) const;
  // Returns a random valid neighbour: randomly drawn knobs get new values until the index changes.
  // Returns the same index if many draws found no other.
  int64_t RandomWalk(int64_t index, Rng& rng) const;

  // Prints the space as autotvm does:
  //   ConfigSpace (len=10454400, space_map=
  //      0 tile_f: Split(policy=factors, product=512, num_outputs=4) len=220
  //   )
  // With filters len counts the valid points, and range_length follows it.
  std::string Print() const;

 private:
  std::vector<Knob> knobs_;
  std::vector<Filter> filters_;
  int64_t range_ = 1;
};

}  // namespace kiln::search
