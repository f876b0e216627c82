#include "search/templates/python_set_order.h"

#include <cstddef>
#include <optional>
#include <utility>

namespace kiln::search {
namespace {

constexpr size_t kMinSize = 8;        // PySet_MINSIZE
constexpr size_t kLinearProbes = 9;   // LINEAR_PROBES
constexpr int kPerturbShift = 5;      // PERTURB_SHIFT
constexpr size_t kLargeSet = 50'000;  // larger sets grow by a factor of 2, smaller ones by 4

// An open-addressing table of numbers that are their own hashes.
class PythonSet {
 public:
  void Add(int64_t key) {
    std::optional<int64_t>& slot = SlotOf(key);
    if (slot.has_value()) return;
    slot = key;
    ++used_;
    if (used_ * 5 >= mask() * 3) Resize(used_ > kLargeSet ? used_ * 2 : used_ * 4);
  }

  // Does *this |= other.
  void Merge(const PythonSet& other) {
    if (other.used_ == 0) return;
    if ((used_ + other.used_) * 5 >= mask() * 3) Resize((used_ + other.used_) * 2);
    if (used_ == 0 && mask() == other.mask()) {
      *this = other;
      return;
    }
    if (used_ == 0) {  // merges into a table that is large enough already
      for (const auto& key : other.table_) {
        if (key) SlotOf(*key) = key;
      }
      used_ = other.used_;
      return;
    }
    for (const auto& key : other.table_) {
      if (key) Add(*key);
    }
  }

  std::vector<int64_t> Keys() const {
    std::vector<int64_t> keys;
    for (const auto& key : table_) {
      if (key) keys.push_back(*key);
    }
    return keys;
  }

 private:
  size_t mask() const { return table_.size() - 1; }

  // Returns the slot that has the key, or the slot to put it in.
  std::optional<int64_t>& SlotOf(int64_t key) {
    size_t perturb = static_cast<size_t>(key);
    size_t i = perturb & mask();
    while (true) {
      const size_t probes = i + kLinearProbes <= mask() ? kLinearProbes : 0;
      for (size_t j = i; j <= i + probes; ++j) {
        if (!table_[j].has_value() || *table_[j] == key) return table_[j];
      }
      perturb >>= kPerturbShift;
      i = (i * 5 + 1 + perturb) & mask();
    }
  }

  void Resize(size_t least) {
    size_t size = kMinSize;
    while (size <= least) size *= 2;
    const auto old = std::exchange(table_, std::vector<std::optional<int64_t>>(size));
    for (const auto& key : old) {
      if (key) SlotOf(*key) = key;
    }
  }

  std::vector<std::optional<int64_t>> table_ = std::vector<std::optional<int64_t>>(kMinSize);
  size_t used_ = 0;
};

PythonSet SetOf(std::span<const int64_t> keys) {
  PythonSet set;
  for (int64_t key : keys) set.Add(key);
  return set;
}

}  // namespace

std::vector<int64_t> PythonUnionOrder(std::span<const int64_t> a, std::span<const int64_t> b) {
  PythonSet result;  // a copy of the first set; the second one is merged into it
  result.Merge(SetOf(a));
  result.Merge(SetOf(b));
  return result.Keys();
}

}  // namespace kiln::search
