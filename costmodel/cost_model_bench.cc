// Measures times and quality of the learned model on synthetic programs:
//   bazel run //costmodel:cost_model_bench [-- NAME=VALUE...]   threads, parameters of the model
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "costmodel/make_cost_model.h"
#include "costmodel/synthetic_testing.h"

namespace kiln::costmodel {
namespace {

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

int Run(const CostModelOptions& options) {
  std::printf("%8s %10s %10s %10s %14s %12s\n", "samples", "full ms", "step ms", "spearman",
              "2048 pred. ms", "bytes");
  for (const int samples : {100, 300, 1000, 3000, 10000}) {
    Rng rng(static_cast<uint64_t>(samples));
    auto made = MakeCostModel("xgb", options);
    if (!made.ok()) {
      std::fprintf(stderr, "error: %s\n", std::string(Message(made.status())).c_str());
      return 1;
    }
    const std::unique_ptr<CostModel> model = *std::move(made);
    const auto held_out = SyntheticSamples(rng, 2048);
    const Stopwatch full;
    Status status = model->Update(SyntheticSamples(rng, samples));
    const double full_ms = full.ms();
    const double quality = RankQuality(*model, held_out);
    const auto programs = Programs(held_out);
    const Stopwatch predict;
    const auto scores = model->Predict(programs);
    const double predict_ms = predict.ms();
    auto more = SyntheticSamples(rng, samples / 10);
    const Stopwatch step;
    if (status.ok()) status = model->Update(std::move(more));
    const double step_ms = step.ms();
    const auto bytes = model->Save();
    if (!status.ok() || !bytes.ok()) {
      std::fprintf(stderr, "error: %s\n", std::string(Message(status)).c_str());
      return 1;
    }
    std::printf("%8d %10.0f %10.0f %10.3f %14.1f %12zu\n", samples, full_ms, step_ms, quality,
                predict_ms, bytes->size());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace kiln::costmodel

int main(int argc, char** argv) {
  kiln::costmodel::CostModelOptions options;
  options.threads = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) {
      std::fprintf(stderr, "usage: cost_model_bench [NAME=VALUE...]\n");
      return 2;
    }
    const std::string name = argument.substr(0, equals);
    const double value = std::atof(argument.c_str() + equals + 1);
    if (name == "threads") {
      options.threads = static_cast<int>(value);
    } else {
      options.parameters[name] = value;
    }
  }
  return kiln::costmodel::Run(options);
}
