// Compares tuned programs with the vendor-grade CPU libraries, in one run, on all cores:
//
//   bazel run //tests/bench:cpu_peers -- --trials 200
//
// For each workload, the candidates that the search proposes for all its variants (with weights
// prepared before) are built, checked against the unscheduled program and timed on the runner's
// device. Then the best program and the library take turns, and the medians of their times are
// compared. The libraries choose their own data layouts and get their weights already packed in
// them; the packing is not timed.
#include <cblas.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <dnnl.hpp>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/arrays/packing.h"
#include "base/clock.h"
#include "base/numbers/rng.h"
#include "builder/build.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "runner/cpu_device.h"
#include "search/policies/models.h"
#include "search/policies/policy.h"
#include "search/tuning/tune.h"

namespace kiln {
namespace {

double Now() { return static_cast<double>(Clock::Real().MonotonicNanos()) * 1e-9; }

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Runs calls of `run` for about `seconds`. Returns the seconds of one call.
double TimeFor(double seconds, const std::function<double(int64_t)>& run) {
  double batch = run(1);
  const auto number = std::max<int64_t>(1, static_cast<int64_t>(seconds / std::max(batch, 1e-9)));
  batch = run(number);
  return batch / static_cast<double>(number);
}

// A built program with its arguments on the device.
class LoadedArtifact {
 public:
  static StatusOr<LoadedArtifact> Make(runner::Device& device, const v1::Artifact& artifact) {
    LoadedArtifact loaded(device);
    KILN_ASSIGN_OR_RETURN(loaded.program_, device.Load(artifact));
    KILN_ASSIGN_OR_RETURN(const auto arguments, runner::ParseArguments(artifact.plan()));
    uint64_t ordinal = 0;
    for (const runner::Argument& argument : arguments) {
      KILN_ASSIGN_OR_RETURN(auto buffer, device.Allocate(argument));
      KILN_RETURN_IF_ERROR(device.Poison(*buffer, runner::Poison::kNaN));
      if (argument.role == v1::ArgSpec::INPUT) {
        KILN_RETURN_IF_ERROR(device.Fill(*buffer, InputOf(argument, ++ordinal)));
      }
      loaded.pointers_.push_back(buffer.get());
      loaded.buffers_.push_back(std::move(buffer));
    }
    return loaded;
  }

  StatusOr<double> Time(int64_t number) { return device_->Time(*program_, pointers_, number); }

  // Returns the largest difference of the outputs, relative to the largest value.
  StatusOr<double> Difference(LoadedArtifact& other) {
    double worst = 0;
    const std::vector<float> a = Output(*this), b = Output(other);
    double scale = 1e-30;
    for (float v : b) scale = std::max<double>(scale, std::abs(v));
    for (size_t i = 0; i < a.size(); ++i) {
      const double d = std::abs(static_cast<double>(a[i]) - b[i]) / scale;
      worst = d <= worst ? worst : d;
      if (!(d == d)) return DataLoss("an output element is not a number");
    }
    return worst;
  }

 private:
  explicit LoadedArtifact(runner::Device& device) : device_(&device) {}

  // Returns the same values whichever way the program takes them.
  static std::vector<std::byte> InputOf(const runner::Argument& argument, uint64_t seed) {
    std::vector<std::byte> plain = RandomFloats(argument.elements, seed);
    if (!argument.packing) return plain;
    std::vector<std::byte> packed(static_cast<size_t>(argument.bytes));
    Pack(*argument.packing, sizeof(float), plain, packed);
    return packed;
  }

  static std::vector<std::byte> RandomFloats(int64_t n, uint64_t seed) {
    Rng rng(seed);
    std::vector<std::byte> bytes(static_cast<size_t>(n) * sizeof(float));
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<float>(UniformReal(rng) * 2 - 1);
      std::memcpy(bytes.data() + i * sizeof(float), &v, sizeof v);
    }
    return bytes;
  }

  static std::vector<float> Output(LoadedArtifact& artifact) {
    for (const auto& buffer : artifact.buffers_) {
      if (buffer->argument().role != v1::ArgSpec::OUTPUT) continue;
      const auto bytes = artifact.device_->Fetch(*buffer);
      KILN_CHECK(bytes.ok());
      std::vector<float> values(bytes->size() / sizeof(float));
      std::memcpy(values.data(), bytes->data(), bytes->size());
      return values;
    }
    return {};
  }

  runner::Device* device_;
  std::unique_ptr<runner::Program> program_;
  std::vector<std::unique_ptr<runner::Buffer>> buffers_;
  std::vector<runner::Buffer*> pointers_;
};

StatusOr<v1::Artifact> BuildArtifact(const std::string& dag, std::string_view steps) {
  v1::BuildRequest request;
  request.set_dag(dag);
  request.set_target("llvm");
  request.set_steps(std::string(steps));
  KILN_ASSIGN_OR_RETURN(const builder::BuildOutcome outcome, builder::Build(request));
  if (outcome.reply.error() != v1::NO_ERROR) return Internal("{}", outcome.reply.message());
  return outcome.reply.artifact();
}

struct Search {
  std::string policy = "sketch.random";
  int trials = 200;
  int trials_per_round = 32;
  uint64_t seed = 1;
  // Steps as JSON. If set, these steps alone are timed instead of a search's.
  std::string schedule;
};

// A way to compute a workload: an operator, its DAG as text, and the results of tuning it.
struct Form {
  std::string name, op, args;
  dag::DagPtr dag = nullptr;
  // Steps of the best schedule; "": none.
  std::string steps = {};
  v1::Artifact artifact = {};
  double cost_s = 1e30;
  int failures = 0;
};

// Builds, checks and times trials in this process, one after the other.
class Bench final : public search::Measurer {
 public:
  Bench(runner::Device& device, std::vector<Form>& variants) : device_(device), forms_(variants) {}

  int capacity() override { return 1; }
  void Submit(search::Trial trial) override { queue_.push_back(std::move(trial)); }

  StatusOr<std::optional<search::Outcome>> Next(double) override {
    if (queue_.empty()) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return woken_; });
      woken_ = false;
      return std::optional<search::Outcome>();
    }
    search::Outcome outcome{std::move(queue_.front())};
    queue_.pop_front();
    const std::string steps = schedule::PrintSteps(outcome.trial.candidate.steps);
    KILN_ASSIGN_OR_RETURN(const std::optional<double> cost_s, Measure(outcome.trial.task, steps));
    outcome.valid = cost_s.has_value();
    outcome.cost_s = cost_s.value_or(0);
    return std::optional<search::Outcome>(std::move(outcome));
  }

  void Wake() override {
    std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

  // Returns the schedule's time; none: its answer is wrong. Keeps the best of each variant.
  StatusOr<std::optional<double>> Measure(int task, const std::string& steps) {
    Form& variant = forms_[static_cast<size_t>(task)];
    const std::string text = dag::PrintDag(*variant.dag);
    std::optional<LoadedArtifact>& reference = references_[task];
    if (!reference.has_value()) {
      KILN_ASSIGN_OR_RETURN(const v1::Artifact artifact, BuildArtifact(text, "[]"));
      KILN_ASSIGN_OR_RETURN(reference, LoadedArtifact::Make(device_, artifact));
      KILN_RETURN_IF_ERROR(reference->Time(1).status());
    }
    KILN_ASSIGN_OR_RETURN(v1::Artifact artifact, BuildArtifact(text, steps));
    KILN_ASSIGN_OR_RETURN(LoadedArtifact loaded, LoadedArtifact::Make(device_, artifact));
    KILN_ASSIGN_OR_RETURN(double cost_s, loaded.Time(1));
    KILN_ASSIGN_OR_RETURN(const double difference, loaded.Difference(*reference));
    if (difference > 1e-4) {
      std::fprintf(stderr, "wrong answer (%g): %s\n", difference, steps.c_str());
      ++variant.failures;
      return std::optional<double>();
    }
    // The shortest of some readings counts, because other work of the machine only ever adds time.
    for (int i = 0; i < 4 && cost_s < 3 * variant.cost_s; ++i) {
      const double reading = TimeFor(0.006, [&](int64_t n) { return *loaded.Time(n); });
      cost_s = i == 0 ? reading : std::min(cost_s, reading);
    }
    if (cost_s < variant.cost_s) {
      variant.steps = steps;
      variant.artifact = std::move(artifact);
      variant.cost_s = cost_s;
    }
    return std::optional<double>(cost_s);
  }

 private:
  runner::Device& device_;
  std::vector<Form>& forms_;
  // References of the tasks, by the number of the task.
  std::map<int, std::optional<LoadedArtifact>> references_;
  std::deque<search::Trial> queue_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
};

// Tunes the variants of one workload as a job does, as alternatives of one task. Nothing else runs
// while a trial is timed.
Status TuneVariants(runner::Device& device, std::vector<Form>& variants, const Search& search,
                    int threads) {
  Bench bench(device, variants);
  if (!search.schedule.empty()) return bench.Measure(0, search.schedule).status();
  target::HardwareParams hardware;
  hardware.num_cores = threads;
  KILN_ASSIGN_OR_RETURN(const search::Models models,
                        search::MakeModels(search.policy, search.seed));
  // Policies refer to these tasks.
  std::deque<search::Task> tasks;
  std::vector<std::unique_ptr<search::Policy>> policies;
  std::vector<search::TuneTask> tuned;
  for (const Form& variant : variants) {
    tasks.emplace_back(variant.dag, target::Target{}, hardware, "");
    KILN_ASSIGN_OR_RETURN(auto policy, search::MakePolicy(search.policy, tasks.back(),
                                                          SplitSeed(search.seed, tasks.size()),
                                                          {.models = models, .threads = threads}));
    search::TuneTask& task = tuned.emplace_back();
    task.policy = policy.get();
    task.facts.flop_count = variant.dag->flop_count();
    if (tuned.size() > 1) task.facts.alternative_of = 0;
    policies.push_back(std::move(policy));
  }
  search::TuneOptions options;
  options.trials = static_cast<uint32_t>(search.trials);
  options.schedule.round_trials = static_cast<uint32_t>(search.trials_per_round);
  options.schedule.first_round_trials = 16;
  options.schedule.seed = search.seed;
  options.lock_step = true;
  const std::atomic<bool> stop = false;
  return search::Tune(tuned, options, bench, stop).status();
}

std::vector<float> Random(int64_t n) {
  Rng rng(static_cast<uint64_t>(n));
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(UniformReal(rng) * 2 - 1);
  return values;
}

std::function<double(int64_t)> OpenBlasGemm(int64_t n) {
  struct Data {
    std::vector<float> a, b, c;
  };
  auto data =
      std::make_shared<Data>(Data{Random(n * n), Random(n * n + 1), std::vector<float>(n * n)});
  return [data, n](int64_t number) {
    const double start = Now();
    for (int64_t i = 0; i < number; ++i) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f, data->a.data(), n,
                  data->b.data(), n, 0.0f, data->c.data(), n);
    }
    return Now() - start;
  };
}

std::function<double(int64_t)> OneDnnGemm(int64_t n) {
  using namespace dnnl;
  const engine cpu(engine::kind::cpu, 0);
  auto queue = std::make_shared<stream>(cpu);
  const memory::desc desc({n, n}, memory::data_type::f32, memory::format_tag::ab);
  auto gemm = std::make_shared<matmul>(matmul::primitive_desc(matmul::desc(desc, desc, desc), cpu));
  auto args = std::make_shared<std::unordered_map<int, memory>>();
  for (int arg : {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}) {
    memory m(desc, cpu);
    std::fill_n(static_cast<float*>(m.get_data_handle()), n * n, 0.5f);
    args->emplace(arg, m);
  }
  return [=](int64_t number) {
    const double start = Now();
    for (int64_t i = 0; i < number; ++i) gemm->execute(*queue, *args);
    queue->wait();
    return Now() - start;
  };
}

struct Conv {
  int64_t h, w, ci, co, k, stride, pad;
  bool depthwise = false;
};

// Convolution + bias + relu in the layouts that the library prefers.
std::function<double(int64_t)> OneDnnConv(const Conv& c) {
  using namespace dnnl;
  const engine cpu(engine::kind::cpu, 0);
  auto queue = std::make_shared<stream>(cpu);
  const int64_t oh = (c.h + 2 * c.pad - c.k) / c.stride + 1,
                ow = (c.w + 2 * c.pad - c.k) / c.stride + 1;
  const auto f32 = memory::data_type::f32;
  const auto any = memory::format_tag::any;
  const memory::dims weights =
      c.depthwise ? memory::dims{c.ci, 1, 1, c.k, c.k} : memory::dims{c.co, c.ci, c.k, c.k};
  const convolution_forward::desc desc(
      prop_kind::forward_inference, algorithm::convolution_auto, {{1, c.ci, c.h, c.w}, f32, any},
      {weights, f32, any}, {{c.co}, f32, memory::format_tag::x}, {{1, c.co, oh, ow}, f32, any},
      {c.stride, c.stride}, {c.pad, c.pad}, {c.pad, c.pad});
  post_ops ops;
  ops.append_eltwise(1.0f, algorithm::eltwise_relu, 0.0f, 0.0f);
  primitive_attr attr;
  attr.set_post_ops(ops);
  const convolution_forward::primitive_desc pd(desc, attr, cpu);
  auto conv = std::make_shared<convolution_forward>(pd);
  auto args = std::make_shared<std::unordered_map<int, memory>>();
  const auto add = [&](int arg, const memory::desc& d) {
    memory m(d, cpu);
    std::fill_n(static_cast<float*>(m.get_data_handle()), d.get_size() / sizeof(float), 0.25f);
    args->emplace(arg, m);
  };
  add(DNNL_ARG_SRC, pd.src_desc());
  add(DNNL_ARG_WEIGHTS, pd.weights_desc());
  add(DNNL_ARG_BIAS, pd.bias_desc());
  add(DNNL_ARG_DST, pd.dst_desc());
  return [=](int64_t number) {
    const double start = Now();
    for (int64_t i = 0; i < number; ++i) conv->execute(*queue, *args);
    queue->wait();
    return Now() - start;
  };
}

std::function<double(int64_t)> OneDnnSoftmax(int64_t rows, int64_t columns) {
  using namespace dnnl;
  const engine cpu(engine::kind::cpu, 0);
  auto queue = std::make_shared<stream>(cpu);
  const memory::desc desc({rows, columns}, memory::data_type::f32, memory::format_tag::ab);
  const softmax_forward::primitive_desc pd(
      softmax_forward::desc(prop_kind::forward_inference, desc, 1), cpu);
  auto softmax = std::make_shared<softmax_forward>(pd);
  auto args = std::make_shared<std::unordered_map<int, memory>>();
  for (int arg : {DNNL_ARG_SRC, DNNL_ARG_DST}) {
    memory m(desc, cpu);
    std::fill_n(static_cast<float*>(m.get_data_handle()), rows * columns, 0.5f);
    args->emplace(arg, m);
  }
  return [=](int64_t number) {
    const double start = Now();
    for (int64_t i = 0; i < number; ++i) softmax->execute(*queue, *args);
    queue->wait();
    return Now() - start;
  };
}

struct Case {
  // Group of workloads over which a geometric mean is taken.
  std::string group;
  std::string op, args, epilogue;
  std::vector<std::pair<std::string, std::function<double(int64_t)>>> peers;

  std::string Name() const { return op + " " + args; }
};

// Options for the forms of a workload.
struct Choice {
  // Leaves out Winograd's variant of convolutions.
  bool direct_only = false;
  // Packs the weights, and puts the channels of convolutions last.
  bool as_in_networks = false;
};

// The first input is the network's; the others are constants.
dag::DagPtr PackWeights(const dag::DagPtr& dag) {
  return dag::PackInputs(dag, [](int op) { return op != 0; });
}

// Returns the operator itself, which says how many FLOPs the workload has, and its other variants.
StatusOr<std::vector<Form>> VariantsOf(const Case& c, const Choice& choice) {
  const dag::OpOptions options{.epilogue = dag::SplitEpilogue(c.epilogue)};
  const bool is_converted = choice.as_in_networks && c.op == "conv2d_nchw";
  const std::string op = is_converted ? "conv2d_nhwc" : c.op;
  std::vector<Form> variants = {{.name = "direct", .op = op, .args = c.args}};
  if (!choice.direct_only) {
    KILN_ASSIGN_OR_RETURN(const auto others, dag::AlgorithmVariants(op, c.args, options, false));
    for (const dag::AlgorithmVariant& other : others)
      variants.push_back({other.name, other.op, other.args});
  }
  for (Form& variant : variants) {
    KILN_ASSIGN_OR_RETURN(variant.dag, dag::BuildOp(variant.op, variant.args, options));
    if (choice.as_in_networks) variant.dag = PackWeights(variant.dag);
  }
  return variants;
}

// Readings of one side: a mean per turn, and the shortest reading of all turns, which other work on
// the machine disturbs least.
struct Readings {
  std::vector<double> means;
  double shortest = 1e30;

  void Add(const std::function<double(int64_t)>& run) {
    constexpr int kReadings = 10;
    double sum = 0;
    for (int i = 0; i < kReadings; ++i) {
      const double reading = TimeFor(0.005, run);
      sum += reading;
      shortest = std::min(shortest, reading);
    }
    means.push_back(sum / kReadings);
  }
};

// A library's time divided by ours.
struct Ratio {
  double medians, shortest;
};

// Returns the ratios in the order of the peers.
StatusOr<std::vector<Ratio>> RunCase(const Case& c, runner::Device& device, const Search& search,
                                     int threads, const Choice& choice, bool print_steps) {
  KILN_ASSIGN_OR_RETURN(std::vector<Form> variants, VariantsOf(c, choice));
  KILN_RETURN_IF_ERROR(TuneVariants(device, variants, search, threads));
  int failures = 0;
  for (const Form& variant : variants) {
    failures += variant.failures;
    if (variants.size() > 1)
      std::printf("  %-20s %9.1f us\n", variant.name.c_str(), variant.cost_s * 1e6);
  }
  const Form& tuned = *std::ranges::min_element(variants, {}, &Form::cost_s);
  if (tuned.steps.empty()) return Internal("none of {} trials gave a right answer", search.trials);
  KILN_ASSIGN_OR_RETURN(LoadedArtifact loaded, LoadedArtifact::Make(device, tuned.artifact));
  Readings ours;
  std::vector<Readings> theirs(c.peers.size());
  for (int round = 0; round < 15; ++round) {
    ours.Add([&](int64_t n) { return *loaded.Time(n); });
    for (size_t p = 0; p < c.peers.size(); ++p) {
      // The threads of one side must be asleep before the other side starts.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      theirs[p].Add(c.peers[p].second);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const double cost = Median(ours.means);
  std::vector<Ratio> ratios;
  std::printf("%-42s kiln %9.1f us (%.1f) %7.1f GFLOP/s", c.Name().c_str(), cost * 1e6,
              ours.shortest * 1e6, variants[0].dag->flop_count() / cost * 1e-9);
  for (size_t p = 0; p < c.peers.size(); ++p) {
    const double other = Median(theirs[p].means);
    ratios.push_back({other / cost, theirs[p].shortest / ours.shortest});
    std::printf(" | %s %9.1f us (%.1f), ratio %.2f (%.2f)", c.peers[p].first.c_str(), other * 1e6,
                theirs[p].shortest * 1e6, ratios[p].medians, ratios[p].shortest);
  }
  std::printf(" | %s, %d wrong\n", tuned.name.c_str(), failures);
  if (print_steps) std::printf("  %s\n", tuned.steps.c_str());
  std::fflush(stdout);
  return ratios;
}

// Returns the 12 convolutions of ResNet-18, a depthwise one of MobileNet, products and a softmax.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (int64_t n : {512, 1024}) {
    cases.push_back({"matmul",
                     "matmul",
                     fmt::format("{0},{0},{0}", n),
                     "",
                     {{"OpenBLAS", OpenBlasGemm(n)}, {"oneDNN", OneDnnGemm(n)}}});
  }
  cases.push_back({"quickstart",
                   "conv2d_nchw",
                   "1,7,7,512,512,3,3,1,1",
                   "bias,relu",
                   {{"oneDNN", OneDnnConv({7, 7, 512, 512, 3, 1, 1})}}});
  for (const Conv& c : std::initializer_list<Conv>{{224, 224, 3, 64, 7, 2, 3},
                                                   {56, 56, 64, 64, 3, 1, 1},
                                                   {56, 56, 64, 64, 1, 1, 0},
                                                   {56, 56, 64, 128, 3, 2, 1},
                                                   {56, 56, 64, 128, 1, 2, 0},
                                                   {28, 28, 128, 128, 3, 1, 1},
                                                   {28, 28, 128, 256, 3, 2, 1},
                                                   {28, 28, 128, 256, 1, 2, 0},
                                                   {14, 14, 256, 256, 3, 1, 1},
                                                   {14, 14, 256, 512, 3, 2, 1},
                                                   {14, 14, 256, 512, 1, 2, 0},
                                                   {7, 7, 512, 512, 3, 1, 1}}) {
    cases.push_back(
        {"conv2d",
         "conv2d_nhwc",
         fmt::format("1,{},{},{},{},{},{},{},{}", c.h, c.w, c.co, c.ci, c.k, c.k, c.stride, c.pad),
         "bias,relu",
         {{"oneDNN", OneDnnConv(c)}}});
  }
  cases.push_back({"conv2d",
                   "depthwise_conv2d_nhwc",
                   "1,56,56,128,3,3,1,1",
                   "bias,relu",
                   {{"oneDNN", OneDnnConv({56, 56, 128, 128, 3, 1, 1, true})}}});
  cases.push_back({"softmax", "softmax", "512,1000", "", {{"oneDNN", OneDnnSoftmax(512, 1000)}}});
  return cases;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Tuned programs against OpenBLAS and oneDNN");
  const int threads = kiln::runner::DefaultCpuThreads();
  kiln::Search search;
  std::string only;
  std::string op, args, epilogue, schedule;
  bool steps = false;
  kiln::Choice choice;
  app.add_option("--policy", search.policy, "the search policy");
  app.add_option("--trials", search.trials, "candidates per workload");
  app.add_option("--trials-per-round", search.trials_per_round, "proposed at once");
  app.add_option("--seed", search.seed, "of the search");
  app.add_option("--only", only, "workloads whose name contains this");
  app.add_option("--op", op, "an operator of your own instead, without a library beside it");
  app.add_option("--args", args, "of --op");
  app.add_option("--epilogue", epilogue, "of --op");
  app.add_option("--schedule", schedule, "a file with the steps to time instead of a search");
  app.add_flag("--direct", choice.direct_only, "convolutions without Winograd's variant");
  app.add_flag("--as-in-networks", choice.as_in_networks,
               "weights are packed, and convolutions have the channels last");
  app.add_flag("--steps", steps, "print the best schedules");
  CLI11_PARSE(app, argc, argv);
  if (!schedule.empty()) {
    std::ifstream file(schedule);
    std::getline(file, search.schedule, '\0');
    choice.direct_only = true;
  }

  const auto device = kiln::runner::MakeCpuDevice({.threads = threads});
  std::printf(
      "%s, %d threads, %s, %d trials each; "
      "ratio = library's time / ours; of the shortest readings in brackets\n",
      device->Name().c_str(), threads, search.policy.c_str(), search.trials);
  // Ratios for each group and library.
  std::map<std::string, std::vector<kiln::Ratio>> ratios;
  std::vector<kiln::Case> cases = kiln::Cases();
  if (!op.empty()) cases = {{op, op, args, epilogue, {}}};
  for (const kiln::Case& c : cases) {
    if (c.Name().find(only) == std::string::npos) continue;
    const auto result = kiln::RunCase(c, *device, search, threads, choice, steps);
    if (!result.ok()) {
      std::fprintf(stderr, "%s: %s\n", c.Name().c_str(),
                   std::string(kiln::Message(result.status())).c_str());
      return 1;
    }
    for (size_t p = 0; p < c.peers.size(); ++p)
      ratios[c.group + " / " + c.peers[p].first].push_back((*result)[p]);
  }
  for (const auto& [name, all] : ratios) {
    double medians = 0, shortest = 0;
    for (const kiln::Ratio& ratio : all) {
      medians += std::log(ratio.medians) / static_cast<double>(all.size());
      shortest += std::log(ratio.shortest) / static_cast<double>(all.size());
    }
    std::printf("geometric mean over %zu of %s: %.2f (%.2f)\n", all.size(), name.c_str(),
                std::exp(medians), std::exp(shortest));
  }
  return 0;
}
