#include "runtime/kernel_order.h"

#include <algorithm>
#include <map>

namespace kiln::runtime {
namespace {

// Networks with more kernels run them one after another, because the order needs a bit for each
// pair.
constexpr size_t kMaxKernelsForStreams = 8192;

struct Access {
  int64_t begin;
  int64_t end;
  int32_t kernel;
  bool written;
};

// The accesses to memory that kernels write, as far as a later access may have to wait for them.
class AccessHistory {
 public:
  // Appends to `before` the kernels that must come before this access.
  void Touch(int32_t space, const Access& access, std::vector<int32_t>& before) {
    std::vector<Access>& earlier = spaces_[space];
    for (const Access& other : earlier) {
      const bool overlap = other.begin < access.end && access.begin < other.end;
      if (overlap && (other.written || access.written) && other.kernel != access.kernel) {
        before.push_back(other.kernel);
      }
    }
    if (access.written) {
      // Later accesses have to wait for this write, which has waited for the erased accesses.
      std::erase_if(earlier, [&](const Access& other) {
        return access.begin <= other.begin && other.end <= access.end;
      });
    }
    earlier.push_back(access);
  }

 private:
  std::map<int32_t, std::vector<Access>> spaces_;
};

// The whole arena is one space, and each output is a space of its own. Other memory is never
// written.
constexpr int32_t kArenaSpace = -1;

// The kernels that come before each kernel, directly or not.
class Ancestors {
 public:
  explicit Ancestors(size_t kernels) : words_((kernels + 63) / 64), bits_(kernels * words_) {}

  bool Has(int32_t kernel, int32_t ancestor) const {
    return (Row(kernel)[static_cast<size_t>(ancestor) / 64] >> (ancestor % 64) & 1) != 0;
  }
  void Add(int32_t kernel, int32_t before) {
    uint64_t* row = &bits_[static_cast<size_t>(kernel) * words_];
    for (size_t i = 0; i < words_; ++i) row[i] |= Row(before)[i];
    row[static_cast<size_t>(before) / 64] |= uint64_t{1} << (before % 64);
  }

 private:
  const uint64_t* Row(int32_t kernel) const { return &bits_[static_cast<size_t>(kernel) * words_]; }
  size_t words_;
  std::vector<uint64_t> bits_;
};

std::vector<int32_t> DirectConflicts(const Network& network, int32_t kernel,
                                     AccessHistory& history) {
  std::vector<int32_t> before;
  for (const KernelArgument& arg : network.kernels[static_cast<size_t>(kernel)].args) {
    const Region region = RegionOf(network, arg.buffer);
    const NetworkBuffer& root = network.buffers[static_cast<size_t>(region.root)];
    if (root.place == Place::kInput || root.place == Place::kConstant) continue;
    const bool in_arena = root.place == Place::kArena;
    const int64_t begin = region.offset + (in_arena ? root.offset : 0);
    history.Touch(in_arena ? kArenaSpace : region.root,
                  {begin, begin + region.bytes, kernel, arg.written}, before);
  }
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  return before;
}

struct Order {
  std::vector<std::vector<int32_t>> dependencies;
  Ancestors ancestors;
};

Order OrderOf(const Network& network) {
  const size_t count = network.kernels.size();
  Order order{std::vector<std::vector<int32_t>>(count), Ancestors(count)};
  AccessHistory history;
  for (int32_t k = 0; k < static_cast<int32_t>(count); ++k) {
    const std::vector<int32_t> before = DirectConflicts(network, k, history);
    for (int32_t one : before) {
      const bool implied = std::any_of(before.begin(), before.end(), [&](int32_t other) {
        return order.ancestors.Has(other, one);
      });
      if (!implied) order.dependencies[static_cast<size_t>(k)].push_back(one);
    }
    for (int32_t one : order.dependencies[static_cast<size_t>(k)]) order.ancestors.Add(k, one);
  }
  return order;
}

// Chooses the stream of one kernel after another.
class Streams {
 public:
  Streams(const Order& order, int most) : order_(order), most_(most) {}

  int Choose(int32_t kernel) {
    const int stream = Find(kernel);
    if (stream == static_cast<int>(last_.size())) last_.push_back(kernel);
    last_[static_cast<size_t>(stream)] = kernel;
    return stream;
  }
  // Returns the last kernel of each stream.
  const std::vector<int32_t>& last() const { return last_; }

 private:
  int Find(int32_t kernel) const {
    const auto& dependencies = order_.dependencies[static_cast<size_t>(kernel)];
    for (auto it = dependencies.rbegin(); it != dependencies.rend(); ++it) {
      const auto at = std::find(last_.begin(), last_.end(), *it);
      if (at != last_.end()) return static_cast<int>(at - last_.begin());
    }
    for (size_t stream = 0; stream < last_.size(); ++stream) {
      if (order_.ancestors.Has(kernel, last_[stream])) return static_cast<int>(stream);
    }
    if (static_cast<int>(last_.size()) < most_) return static_cast<int>(last_.size());
    // Takes the stream whose last kernel is the oldest.
    return static_cast<int>(std::min_element(last_.begin(), last_.end()) - last_.begin());
  }

  const Order& order_;
  const int most_;
  std::vector<int32_t> last_;
};

}  // namespace

std::vector<std::vector<int32_t>> DependenciesOf(const Network& network) {
  return OrderOf(network).dependencies;
}

StreamPlan PlanStreams(const Network& network, int most_streams) {
  StreamPlan plan;
  plan.steps.resize(network.kernels.size());
  if (most_streams <= 1 || plan.steps.size() > kMaxKernelsForStreams) return plan;
  const Order order = OrderOf(network);
  Streams streams(order, most_streams);
  for (size_t k = 0; k < plan.steps.size(); ++k) {
    StreamPlan::Step& step = plan.steps[k];
    step.stream = streams.Choose(static_cast<int32_t>(k));
    for (int32_t before : order.dependencies[k]) {
      StreamPlan::Step& other = plan.steps[static_cast<size_t>(before)];
      if (other.stream == step.stream) continue;
      other.awaited = true;
      step.waits.push_back(before);
    }
  }
  plan.streams = std::max<int>(1, static_cast<int>(streams.last().size()));
  for (size_t stream = 1; stream < streams.last().size(); ++stream) {
    plan.joins.push_back(streams.last()[stream]);
    plan.steps[static_cast<size_t>(plan.joins.back())].awaited = true;
  }
  return plan;
}

}  // namespace kiln::runtime
