// Runs a fuzz target as a test, without libFuzzer: all inputs of its corpus, and a number of
// changed inputs, which are always the same for a seed.
//
//   NAME_fuzz_test FOLDER... [--changed N] [--seed N]
//   NAME_fuzz_test FILE
//
// An input that ends the process, or that takes until the test is ended, is kept in
// TEST_UNDECLARED_OUTPUTS_DIR or the current folder.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/numbers/rng.h"
#include "base/status.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets/fuzz_target.h"

#pragma weak LLVMFuzzerCustomMutator
#pragma weak LLVMFuzzerCustomCrossOver

namespace kiln::fuzz {
namespace {

constexpr size_t kMaxBytes = 1 << 16;

// Used by LLVMFuzzerMutate.
Rng rng;

// Variables that a signal handler may use.
std::string crash_path;
const char* current = nullptr;
size_t current_size = 0;

void KeepInput(int signal) {
  const int file = open(crash_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && write(file, current, current_size) == static_cast<ssize_t>(current_size)) {
    constexpr std::string_view kKept = "the input that ended this process is kept in ";
    (void)!write(STDERR_FILENO, kKept.data(), kKept.size());
    (void)!write(STDERR_FILENO, crash_path.data(), crash_path.size());
    (void)!write(STDERR_FILENO, "\n", 1);
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void KeepInputOfCrash() {
  const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  crash_path = fmt::format("{}/crash", folder == nullptr ? "." : folder);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM}) {
    std::signal(signal, KeepInput);
  }
}

void RunOne(const std::string& input) {
  current = input.data();
  current_size = input.size();
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

StatusOr<std::vector<std::string>> ReadCorpus(const std::vector<std::string>& paths) {
  std::vector<std::string> files, inputs;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (!entry.is_directory()) files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  for (const std::string& file : files) {
    KILN_ASSIGN_OR_RETURN(inputs.emplace_back(), ReadFile(file, kMaxBytes));
  }
  if (inputs.empty()) return InvalidArgument("no input is there");
  return inputs;
}

std::string Changed(const std::string& input, const std::string& other) {
  std::string bytes(kMaxBytes, '\0');
  auto* data = reinterpret_cast<uint8_t*>(bytes.data());
  const auto seed = static_cast<unsigned int>(rng());
  size_t size = input.size();
  if (LLVMFuzzerCustomCrossOver != nullptr && Chance(rng, 0.2)) {
    size = LLVMFuzzerCustomCrossOver(reinterpret_cast<const uint8_t*>(input.data()), input.size(),
                                     reinterpret_cast<const uint8_t*>(other.data()), other.size(),
                                     data, kMaxBytes, seed);
  } else {
    std::ranges::copy(input, bytes.begin());
    size = LLVMFuzzerCustomMutator != nullptr ? LLVMFuzzerCustomMutator(data, size, kMaxBytes, seed)
                                              : LLVMFuzzerMutate(data, size, kMaxBytes);
  }
  bytes.resize(size);
  return bytes;
}

Status Replay(const std::vector<std::string>& paths, int changed, uint64_t seed) {
  KILN_ASSIGN_OR_RETURN(const std::vector<std::string> inputs, ReadCorpus(paths));
  KeepInputOfCrash();
  for (const std::string& input : inputs) RunOne(input);
  rng.seed(seed);
  for (int i = 0; i < changed; ++i) {
    std::string input = PickFrom(rng, inputs);
    for (int64_t changes = UniformIn(rng, 1, 3); changes > 0; --changes) {
      input = Changed(input, PickFrom(rng, inputs));
    }
    RunOne(input);
  }
  fmt::print("{} inputs and {} changed ones\n", inputs.size(), changed);
  return OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("a fuzz target over its corpus");
  std::vector<std::string> paths;
  int changed = 0;
  uint64_t seed = 1;
  app.add_option("paths", paths, "folders of inputs, or single ones")->required();
  app.add_option("--changed", changed, "so many changed ones of them")->capture_default_str();
  app.add_option("--seed", seed, "of the changes")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const Status status = Replay(paths, changed, seed);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", Message(status));
  return 1;
}

}  // namespace
}  // namespace kiln::fuzz

size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  const std::string changed =
      kiln::fuzz::MutateText(kiln::fuzz::InputText(data, size), "", {}, max_size, kiln::fuzz::rng);
  std::ranges::copy(changed, reinterpret_cast<char*>(data));
  return changed.size();
}

int main(int argc, char** argv) { return kiln::fuzz::Main(argc, argv); }
