// Selects the records that are worth shipping: of each computation, target and device the best one
// that a search has found.
//
// Not thread-safe. Holds the selected records only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "store/record.h"
#include "store/shipped_file.h"

namespace kiln::client {

struct SelectionOptions {
  // A part of the device's name; "": any device.
  std::string device;
  // Identities of computations; none: all computations.
  std::optional<std::set<std::string>> workloads;
};

// Numbers of correct records of the wanted devices and computations that are not selected, by the
// reason.
struct LeftOut {
  // The record came from a log: its computation or its device is not known.
  int64_t unknown = 0;
  // The record is of the unscheduled loops, or of a hand-written kernel, or its program laid inputs
  // out in an order that its steps do not say.
  int64_t no_schedule = 0;
  // The cost is in doubt, or is one short reading.
  int64_t doubtful = 0;
};

class ShippedSelection {
 public:
  explicit ShippedSelection(SelectionOptions options) : options_(std::move(options)) {}

  // Failed trials are ignored.
  void Add(const store::Record& record);
  const LeftOut& left_out() const { return left_out_; }
  // Returns the selected records, ordered by target, device and computation.
  std::vector<store::Record> Finish();

 private:
  bool IsWanted(const store::Record& record) const;

  const SelectionOptions options_;
  LeftOut left_out_;
  // Key: target, device, computation.
  std::map<std::tuple<std::string, std::string, std::string>, store::Record> best_;
};

}  // namespace kiln::client
