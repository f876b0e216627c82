#include "search/templates/knob.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/numbers/integers.h"
#include "search/space/factorization.h"
#include "search/templates/python_set_order.h"

namespace kiln::search {
namespace {

constexpr std::string_view kSplitPolicies[] = {"factors", "power2", "verbose", "candidate"};
constexpr std::string_view kReorderPolicies[] = {"identity",  "all",        "interval_all",
                                                 "candidate", "interleave", "interleave_cuda"};

template <typename Policy, size_t n>
StatusOr<Policy> ParsePolicy(std::string_view word, const std::string_view (&words)[n]) {
  const auto found = std::ranges::find(words, word);
  if (found == std::end(words))
    return InvalidArgument("unknown policy '{}', expected one of {}", word, fmt::join(words, ", "));
  return static_cast<Policy>(found - std::begin(words));
}

template <typename Policy, size_t n>
std::string_view WordOf(Policy policy, const std::string_view (&words)[n]) {
  return words[static_cast<size_t>(policy)];
}

std::vector<Entity> Only(Entity entity) {
  std::vector<Entity> entities;
  entities.push_back(std::move(entity));
  return entities;
}

// ---- split

std::vector<int64_t> PowersOfTwo(int64_t most) {
  std::vector<int64_t> powers;
  for (int64_t power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

std::vector<int64_t> FactorsOf(int64_t extent, const SplitOptions& options) {
  std::vector<int64_t> factors;
  switch (options.policy) {
    case SplitPolicy::kFactors:
      factors = Divisors(extent);
      break;
    case SplitPolicy::kPower2:
      factors = PowersOfTwo(extent);
      break;
    case SplitPolicy::kVerbose:
      factors = PythonUnionOrder(Divisors(extent), PowersOfTwo(extent));
      break;
    case SplitPolicy::kCandidate:
      break;
  }
  std::erase_if(factors, [&](int64_t factor) { return factor > options.max_factor; });
  return factors;
}

// Chooses the sizes from the innermost outward; the innermost one changes slowest.
class SplitEnumerator {
 public:
  SplitEnumerator(int64_t extent, const SplitOptions& options)
      : extent_(extent),
        options_(options),
        no_tail_(options.no_tail.value_or(options.policy == SplitPolicy::kFactors)),
        factors_(FactorsOf(extent, options)),
        sizes_(static_cast<size_t>(options.num_outputs), -1) {}

  StatusOr<std::vector<Entity>> Run() {
    if (!Choose(sizes_.size() - 1, 1))
      return InvalidArgument(
          "more than {} ways to split {} into {} loops were looked at, expected fewer: give "
          "max_factor, or fewer outputs",
          kMaxKnobDraws, extent_, sizes_.size());
    return std::move(entities_);
  }

 private:
  // Sizes inside `position` are chosen already. Returns false if there are too many.
  bool Choose(size_t position, int64_t product) {
    if (++draws_ > kMaxKnobDraws || std::ssize(entities_) > kMaxKnobEntities) return false;
    if (position == 0) {
      Keep(product);
      return true;
    }
    for (const int64_t factor : factors_) {
      // Unsorted factors may have smaller ones behind this one, so the loop goes on.
      if (MultiplyCounts(product, factor) > extent_) continue;
      sizes_[position] = factor;
      if (!Choose(position - 1, product * factor)) return false;
    }
    return true;
  }

  void Keep(int64_t product) {
    const bool divides = extent_ % product == 0;
    if (!divides && (no_tail_ || product >= extent_)) return;
    if (options_.filter && !options_.filter(sizes_)) return;
    entities_.emplace_back(SplitEntity{sizes_});
  }

  const int64_t extent_;
  const SplitOptions& options_;
  const bool no_tail_;
  const std::vector<int64_t> factors_;
  std::vector<int64_t> sizes_;
  std::vector<Entity> entities_;
  int64_t draws_ = 0;
};

StatusOr<std::vector<Entity>> CandidateSplits(const SplitOptions& options) {
  std::vector<Entity> entities;
  for (const std::vector<int64_t>& sizes : options.candidates) {
    if (std::ssize(sizes) != options.num_outputs)
      return InvalidArgument("the candidate [{}] has {} sizes, expected {}", fmt::join(sizes, ", "),
                             sizes.size(), options.num_outputs);
    for (size_t i = 1; i < sizes.size(); ++i) {
      if (sizes[i] < 1)
        return InvalidArgument("the candidate [{}] has the size {}, expected 1 or more",
                               fmt::join(sizes, ", "), sizes[i]);
    }
    if (!options.filter || options.filter(sizes)) entities.emplace_back(SplitEntity{sizes});
  }
  return entities;
}

// ---- reorder

using Order = std::vector<int64_t>;

Order Identity(int loops) {
  Order order(static_cast<size_t>(loops));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Lists every permutation of [begin, end); the other loops stay in place.
StatusOr<std::vector<Entity>> Permutations(int loops, int begin, int end) {
  if (begin < 0 || end > loops || begin > end)
    return InvalidArgument("the interval [{}, {}) is not one of {} loops", begin, end, loops);
  constexpr int kMax = 9;  // 9! is below kMaxKnobEntities
  if (end - begin > kMax)
    return InvalidArgument("all orders of {} loops are too many, expected at most {} loops",
                           end - begin, kMax);
  Order order = Identity(loops);
  std::vector<Entity> entities;
  do {
    entities.emplace_back(ReorderEntity{order});
  } while (std::next_permutation(order.begin() + begin, order.begin() + end));
  return entities;
}

Status CheckOrder(const Order& order, int loops) {
  Order sorted = order;
  std::ranges::sort(sorted);
  if (sorted == Identity(loops)) return OkStatus();
  return InvalidArgument("[{}] is no order of {} loops", fmt::join(order, ", "), loops);
}

// Takes the next loop from the chain with the most loops left, or from the first such chain.
Order MergeChains(const std::vector<Order>& chains) {
  std::vector<size_t> taken(chains.size());
  Order merged;
  while (true) {
    size_t longest = 0, left = 0;
    for (size_t i = 0; i < chains.size(); ++i) {
      if (chains[i].size() - taken[i] > left) {
        longest = i;
        left = chains[i].size() - taken[i];
      }
    }
    if (left == 0) return merged;
    merged.push_back(chains[longest][taken[longest]++]);
  }
}

StatusOr<std::vector<Entity>> Interleaved(int loops, const ReorderOptions& options) {
  std::vector<Order> outer, inner;
  Order innermost;
  for (const Order& chain : options.spatial) {
    if (chain.empty()) return InvalidArgument("a chain of spatial loops is empty");
    outer.emplace_back(chain.begin(), chain.end() - 1);
    innermost.push_back(chain.back());
  }
  if (options.policy == ReorderPolicy::kInterleave) {
    for (const int64_t loop : innermost) inner.push_back({loop});
    innermost.clear();
  }
  inner.insert(inner.end(), options.reduce.begin(), options.reduce.end());
  Order order = MergeChains(outer);
  const Order merged = MergeChains(inner);
  order.insert(order.end(), merged.begin(), merged.end());
  order.insert(order.end(), innermost.begin(), innermost.end());
  KILN_RETURN_IF_ERROR(
      Annotate(CheckOrder(order, loops), "the chains name each loop once, expected so"));
  return Only(ReorderEntity{std::move(order)});
}

StatusOr<std::vector<Entity>> Orders(int loops, const ReorderOptions& options) {
  switch (options.policy) {
    case ReorderPolicy::kIdentity:
      return Only(ReorderEntity{Identity(loops)});
    case ReorderPolicy::kAll:
      return Permutations(loops, 0, loops);
    case ReorderPolicy::kIntervalAll:
      return Permutations(loops, options.begin, options.end);
    case ReorderPolicy::kCandidate: {
      std::vector<Entity> entities;
      for (const Order& order : options.candidates) {
        KILN_RETURN_IF_ERROR(CheckOrder(order, loops));
        entities.emplace_back(ReorderEntity{order});
      }
      return entities;
    }
    case ReorderPolicy::kInterleave:
    case ReorderPolicy::kInterleaveCuda:
      return Interleaved(loops, options);
  }
  return InvalidArgument("unknown policy");
}

// ---- annotate

// Loops beyond the bound ones are fused into the first bound loop.
struct Binding {
  int least_loops;
  std::vector<std::string> words;
};

StatusOr<std::vector<Entity>> Bound(int loops, std::span<const Binding> bindings) {
  for (const Binding& binding : bindings) {
    if (loops < binding.least_loops) continue;
    std::vector<std::string> words(static_cast<size_t>(loops) - binding.words.size(), "fuse");
    words.insert(words.end(), binding.words.begin(), binding.words.end());
    return Only(AnnotateEntity{std::move(words), {}});
  }
  return InvalidArgument("{} loops cannot be bound, expected {} or more", loops,
                         bindings.back().least_loops);
}

StatusOr<std::vector<Entity>> BoundToGpu(int loops) {
  const Binding bindings[] = {
      {6, {"blockIdx.z", "blockIdx.y", "blockIdx.x", "threadIdx.z", "threadIdx.y", "threadIdx.x"}},
      {4, {"blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"}},
      {2, {"blockIdx.x", "threadIdx.x"}}};
  return Bound(loops, bindings);
}

StatusOr<std::vector<Entity>> BoundToGpuVirtual(int loops) {
  const Binding bindings[] = {
      {9,
       {"blockIdx.z", "blockIdx.y", "blockIdx.x", "vthread", "vthread", "vthread", "threadIdx.z",
        "threadIdx.y", "threadIdx.x"}},
      {6, {"blockIdx.y", "blockIdx.x", "vthread", "vthread", "threadIdx.y", "threadIdx.x"}},
      {3, {"blockIdx.x", "vthread", "threadIdx.x"}}};
  return Bound(loops, bindings);
}

StatusOr<std::vector<std::string>> WordsOf(std::string_view policy) {
  std::vector<std::string> words;
  size_t start = 0;
  while (start <= policy.size()) {
    const size_t end = std::min(policy.find('_', start), policy.size());
    const std::string_view word = policy.substr(start, end - start);
    words.emplace_back(word == "try" ? "none" : word);
    if (words.back() != "none" && words.back() != "unroll" && words.back() != "vec")
      return InvalidArgument(
          "unknown policy '{}', expected bind_gpu, bind_gpu_virtual, locate_cache, or words of "
          "none, try, unroll and vec joined by '_'",
          policy);
    start = end + 1;
  }
  return words;
}

StatusOr<std::vector<Entity>> WordChoices(int loops, const std::vector<std::string>& words) {
  int64_t choices = 1;
  for (int i = 0; i < loops; ++i) choices = MultiplyCounts(choices, std::ssize(words));
  if (choices > kMaxKnobEntities)
    return InvalidArgument("{} words for {} loops are too many, expected at most {} choices",
                           words.size(), loops, kMaxKnobEntities);
  std::vector<Entity> entities;
  for (int64_t choice = 0; choice < choices; ++choice) {
    AnnotateEntity entity{std::vector<std::string>(static_cast<size_t>(loops)), {}};
    int64_t left = choice;
    for (auto word = entity.words.rbegin(); word != entity.words.rend(); ++word) {
      *word = words[static_cast<size_t>(left % std::ssize(words))];
      left /= std::ssize(words);
    }
    if (std::ranges::count(entity.words, "vec") <= 1) entities.push_back(std::move(entity));
  }
  return entities;
}

Status CheckLoopCount(int loops) {
  constexpr int kMax = 64;
  if (loops >= 1 && loops <= kMax) return OkStatus();
  return InvalidArgument("{} loops, expected 1 to {}", loops, kMax);
}

}  // namespace

StatusOr<SplitPolicy> ParseSplitPolicy(std::string_view word) {
  return ParsePolicy<SplitPolicy>(word, kSplitPolicies);
}
StatusOr<ReorderPolicy> ParseReorderPolicy(std::string_view word) {
  return ParsePolicy<ReorderPolicy>(word, kReorderPolicies);
}

StatusOr<Knob> Knob::Make(std::string name, std::string what, std::vector<Entity> entities) {
  if (entities.empty()) return InvalidArgument("knob {} has no value", name);
  if (std::ssize(entities) > kMaxKnobEntities)
    return InvalidArgument("knob {} has {} values, expected at most {}", name, entities.size(),
                           kMaxKnobEntities);
  return Knob(std::move(name), std::move(what), std::move(entities));
}

StatusOr<Knob> Knob::Split(std::string name, int64_t extent, const SplitOptions& options) {
  constexpr int kMaxOutputs = 16;
  if (options.num_outputs < 2 || options.num_outputs > kMaxOutputs)
    return InvalidArgument("knob {} splits into {} loops, expected 2 to {}", name,
                           options.num_outputs, kMaxOutputs);
  if (extent < 1) return InvalidArgument("knob {} splits a loop of extent {}", name, extent);
  StatusOr<std::vector<Entity>> entities = options.policy == SplitPolicy::kCandidate
                                               ? CandidateSplits(options)
                                               : SplitEnumerator(extent, options).Run();
  if (!entities.ok()) return kiln::Annotate(entities.status(), "knob " + name);
  return Make(std::move(name),
              fmt::format("Split(policy={}, product={}, num_outputs={})",
                          WordOf(options.policy, kSplitPolicies), extent, options.num_outputs),
              *std::move(entities));
}

StatusOr<Knob> Knob::Reorder(std::string name, int num_loops, const ReorderOptions& options) {
  KILN_RETURN_IF_ERROR(kiln::Annotate(CheckLoopCount(num_loops), "knob " + name));
  StatusOr<std::vector<Entity>> entities = Orders(num_loops, options);
  if (!entities.ok()) return kiln::Annotate(entities.status(), "knob " + name);
  return Make(std::move(name),
              fmt::format("Reorder(policy={})", WordOf(options.policy, kReorderPolicies)),
              *std::move(entities));
}

StatusOr<Knob> Knob::Annotate(std::string name, int num_loops, std::string_view policy) {
  KILN_RETURN_IF_ERROR(kiln::Annotate(CheckLoopCount(num_loops), "knob " + name));
  StatusOr<std::vector<Entity>> entities = [&]() -> StatusOr<std::vector<Entity>> {
    if (policy == "bind_gpu") return BoundToGpu(num_loops);
    if (policy == "bind_gpu_virtual") return BoundToGpuVirtual(num_loops);
    KILN_ASSIGN_OR_RETURN(const std::vector<std::string> words, WordsOf(policy));
    return WordChoices(num_loops, words);
  }();
  if (!entities.ok()) return kiln::Annotate(entities.status(), "knob " + name);
  return Make(std::move(name), fmt::format("Annotate(policy={})", policy), *std::move(entities));
}

StatusOr<Knob> Knob::Locate(std::string name, int num_loops, int num_anchors) {
  KILN_RETURN_IF_ERROR(kiln::Annotate(CheckLoopCount(num_loops), "knob " + name));
  if (num_anchors < 1 || num_anchors > num_loops)
    return InvalidArgument("knob {} chooses {} of {} loops, expected 1 to {}", name, num_anchors,
                           num_loops, num_loops);
  std::vector<int64_t> places = Identity(num_anchors);
  std::vector<Entity> entities;
  while (true) {
    entities.emplace_back(AnnotateEntity{{}, places});
    if (std::ssize(entities) > kMaxKnobEntities)
      return InvalidArgument("knob {} has more than {} values", name, kMaxKnobEntities);
    // Moves the last place that can still move; the places after it follow it.
    int i = num_anchors - 1;
    while (i >= 0 && places[i] == num_loops - num_anchors + i) --i;
    if (i < 0) break;
    std::iota(places.begin() + i, places.end(), places[i] + 1);
  }
  return Make(std::move(name), "Annotate(policy=locate_cache)", std::move(entities));
}

StatusOr<Knob> Knob::Option(std::string name, std::vector<OptionEntity> values) {
  std::string list;
  std::vector<Entity> entities;
  for (OptionEntity& value : values) {
    entities.emplace_back(std::move(value));
    list += (list.empty() ? "" : ", ") + PrintEntity(entities.back());
  }
  return Make(std::move(name), fmt::format("OtherOption([{}])", list), std::move(entities));
}

std::string Knob::Description() const { return fmt::format("{} len={}", what_, entities_.size()); }

}  // namespace kiln::search
