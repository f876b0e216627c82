#include "tests/fuzz/fuzz_cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/rng.h"
#include "base/subprocess.h"
#include "tests/fuzz/mutate.h"

namespace kiln::fuzz {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kTexts[] = {
    "let N = 16\ninput A: float32[N, 24]\ninput B: float32[24, 8]\ninput bias: float32[8]\n"
    "C[i: N, j: 8] = sum(k: 24) A[i, k] * B[k, j]\n"
    "D[i: N, j: 8] = max(C[i, j] + bias[j], 0.0)\n",
    "input X: float16[2, 8, 8, 3]\ninput W: float16[3, 3, 3, 4]\n"
    "P[n: 2, h: 10, w: 10, c: 3] = if(1 <= h && h < 9 && 1 <= w && w < 9, X[n, h - 1, w - 1, c], "
    "0)\n"
    "@no_split_at_inner(r, s)\n"
    "Y[n: 2, h: 8, w: 8, f: 4] = sum(r: 3, s: 3, c: 3) P[n, h + r, w + s, c] * W[r, s, c, f]\n",
    "input table: float32[50, 4]\ninput ids: int32[6]\n"
    "out[i: 6, j: 4] = table[max(min(ids[i], 49), 0), j]\n"
    "M[i: 6] = argmax(k: 4) (int32(k), out[i, k])\nlast[i: 6] = M.index[i] + 1\n",
    "input A: float32[8, 64]\nm[i: 8] = max(k: 64) A[i, k]\n"
    "e[i: 8, j: 64] = exp(A[i, j] - m[i])\ns[i: 8] = sum(k: 64) e[i, k]\n"
    "@flop(100)\nR[i: 8, j: 64] = e[i, j] / s[i]\n",
    "input A: int64[7]\nB[i: 7] = (A[i] // 3) % 5 + select(i < 3, 1, 2)\nC[] = sum(i: 7) B[i]\n"};
constexpr std::string_view kTextWords[] = {
    "input ", "let ", "sum(k: 8) ", "if(",           "select(",       "min(",
    " // ",   " % ",  "0 - ",       "@flop(1)",      "[i: 8]",        "float64(",
    "int8[]", "A[",   "k",          "1 << 40",       "`a b`",         "exp(",
    "pow(",   "true", "X'1",        "@keep_order\n", "1099511627776", "#"};

constexpr std::string_view kSteps[] = {
    R"([["SP", 2, 0, 16, [4, 2], 1], ["SP", 2, 3, 8, [2], 1], ["RE", 2, [0, 3, 1, 4, 5, 2]], ["FU", 2, [0, 1]], ["AN", 2, 0, 3]])",
    R"([["CHW", 2, "local"], ["SP", 2, 0, 16, [4], 1], ["FSP", 3, 0, 1, 1], ["CA", 2, 3, 0], ["PR", 2, 0, "auto_unroll_max_step$64"]])",
    R"([["FU", 2, [0, 1]], ["SP", 2, 1, 24, [3], 1], ["RF", 2, 1, 1], ["CI", 3], ["CR", 2]])",
    R"([["CHR", 0, "shared", [3]], ["CA", 1, 3, 2], ["SA", 1, 0, 32, 8], ["BF", 3, 2], ["LA", 1, [1, 0]], ["FFSP", 4, 0, [0], 0, 1]])"};
constexpr std::string_view kStepWords[] = {"[\"SP\", 2, 0, 16, [1, 1, 1], 1], ",
                                           "[\"CI\", 3], ",
                                           "[\"CA\", 2, 3, 1], ",
                                           "[\"RF\", 2, 2, 0], ",
                                           "[\"XX\"]",
                                           "[\"CHW\", 2, \"local\"], ",
                                           "[\"AN\", 3, 0, 6], ",
                                           "null",
                                           ", "};

constexpr std::string_view kLogLine =
    R"({"i": [["[\"6d012ba18a086c11ee2b85c7324e16f2\", [16, 24], [24, 8], [16, 8]]", "llvm -keys=cpu", [8, 64, 64, 0, 0, 0, 0, 0], "", 1, []], [[], [["SP", 2, 0, 16, [4, 2], 1], ["AN", 2, 0, 3]]]], "r": [[0.00123, 0.00124], 0, 0.5, 1604912345], "v": "v0.6"})"
    "\n";
constexpr std::string_view kTaskList = "1 matmul 16,16,16\n2 dense 8,8,8 bias,relu\n# comment\n";

constexpr std::string_view kFlags[] = {
    "--args",      "--dtype",   "--out-dtype", "--epilogue", "--target", "--db",       "--json",
    "--as",        "--op",      "--record",    "--task",     "--steps",  "--sketches", "--job",
    "--workload",  "--errors",  "-o",          "--help",     "--trials", "--seed",     "--policy",
    "--parameter", "--weights", "--number",    "--name"};
constexpr std::string_view kValues[] = {
    "16,16,16",         "float32", "float99", "relu",   "llvm",     "null",
    "cuda -arch=sm_90", "steps",   "program", "matmul", "none",     "conv2d_nhwc",
    "eps_greedy=nan",   "empty",   "",        "-",      "/dev/null"};
// None of these serves.
const std::vector<Words> kCommands = {{"best"},
                                      {"show"},
                                      {"jobs"},
                                      {"check"},
                                      {"ops"},
                                      {"records", "export"},
                                      {"records", "stats"},
                                      {"trial"},
                                      {"records"},
                                      {"cancel"},
                                      {"export-kernel"},
                                      {"records", "distill"}};

// What is run, and the file that it reads.
struct Input {
  Words words;
  std::string path, bytes;
};

std::string Mutated(std::span<const std::string_view> texts,
                    std::span<const std::string_view> dictionary, Rng& rng) {
  const std::string_view text = PickFrom(rng, texts), other = PickFrom(rng, texts);
  // Some are long.
  return MutateText(text, other, dictionary, Chance(rng, 0.02) ? 1 << 20 : 1 << 14, rng);
}

}  // namespace

StatusOr<CliFuzzer> CliFuzzer::Make(std::string kiln, std::string folder) {
  CliFuzzer fuzzer(std::move(kiln), std::move(folder));
  const std::string log = fuzzer.folder_ + "/valid.json", db = fuzzer.folder_ + "/valid.db";
  KILN_RETURN_IF_ERROR(WriteFileAtomically(log, kLogLine));
  KILN_ASSIGN_OR_RETURN(const RunResult made,
                        RunToEnd({.argv = {fuzzer.kiln_, "records", "import", log, "--db", db},
                                  .output = SubprocessOptions::Stream::kPipe,
                                  .error = SubprocessOptions::Stream::kPipe},
                                 {}, absl::Seconds(60)));
  if (!made.exit.ok()) return Internal("{}: {}", made.exit.ToString(), made.error);
  KILN_ASSIGN_OR_RETURN(fuzzer.database_, ReadFile(db));
  return fuzzer;
}

void CliFuzzer::Run(uint64_t seed, Findings& findings) const {
  Rng rng(seed);
  const std::string path = folder_ + "/input", te = path + ".te", db = path + ".db";
  const auto make = [&]() -> Input {
    switch (UniformInt(rng, 10)) {
      case 0:
        return {{"check", te}, te, Mutated(kTexts, kTextWords, rng)};
      case 1:
        return {
            {"show", "--op", te, "--steps", "none", "--as", Chance(rng, 0.5) ? "program" : "loops",
             "--target", Chance(rng, 0.5) ? "llvm" : "cuda -arch=sm_90"},
            te,
            Mutated(kTexts, kTextWords, rng)};
      case 2:
        return {
            {"show", te, "--sketches", "--target", Chance(rng, 0.5) ? "llvm" : "cuda -arch=sm_90"},
            te,
            Mutated(kTexts, kTextWords, rng)};
      case 3:
        return {{"tune", te, "--target", "null", "--trials", "1", "--policy", "sketch.random",
                 "--db", folder_ + "/tuned.db"},
                te,
                Mutated(kTexts, kTextWords, rng)};
      case 4:
      case 5: {
        const std::string_view forms[] = {"program", "loops", "schedule", "steps"};
        return {{"show", "--op", folder_ + "/matmul.te", "--steps", path, "--as",
                 std::string(PickFrom(rng, std::span(forms))), "--target",
                 Chance(rng, 0.5) ? "llvm" : "cuda -arch=sm_90"},
                path,
                Mutated(kSteps, kStepWords, rng)};
      }
      case 6: {
        const std::string_view lines[] = {kLogLine, kLogLine};
        return {{"records", "import", path, "--db", folder_ + "/imported.db", "--rejected",
                 folder_ + "/rejected.json"},
                path,
                Mutated(lines, kStepWords, rng)};
      }
      case 7: {
        const std::string_view lists[] = {kTaskList};
        return {{"tune", "--tasks", path, "--target", "null", "--trials", "2", "--policy", "empty",
                 "--db", folder_ + "/tuned.db"},
                path,
                Mutated(lists, kTextWords, rng)};
      }
      case 8: {
        Input input{PickFrom(rng, kCommands), db, database_};
        for (int64_t i = UniformInt(rng, 6); i > 0; --i) {
          std::string word(Chance(rng, 0.5) ? PickFrom(rng, std::span(kFlags))
                                            : PickFrom(rng, std::span(kValues)));
          if (Chance(rng, 0.2)) word = MutateText(word, "", kValues, 1000, rng);
          if (Chance(rng, 0.1)) word = ExtremeNumber(rng);
          word.resize(std::min(word.size(), word.find('\0')));
          input.words.push_back(std::move(word));
        }
        return input;
      }
      default: {
        const std::vector<Words> readers = {{"jobs"},
                                            {"best", "import"},
                                            {"records", "export"},
                                            {"records", "stats"},
                                            {"records", "distill"},
                                            {"show", "1"}};
        Input input{PickFrom(rng, readers), db, database_};
        input.words.insert(input.words.end(), {"--db", db});
        for (int64_t i = UniformIn(rng, 1, 20); i > 0; --i) {
          input.bytes[static_cast<size_t>(UniformInt(rng, std::ssize(input.bytes)))] =
              static_cast<char>(rng());
        }
        if (Chance(rng, 0.3))
          input.bytes.resize(static_cast<size_t>(UniformInt(rng, std::ssize(input.bytes))));
        return input;
      }
    }
  };
  const Input input = make();
  const std::string command = fmt::format("kiln {}", fmt::join(input.words, " "));
  const auto fail = [&](std::string_view what, std::string_view how) {
    findings.Add(what, seed, fmt::format("{}\n  {}", command, how), input.bytes);
  };
  for (const char* end : {"", "-wal", "-shm", "-journal"}) (void)RemoveFile(db + end);
  (void)WriteFileAtomically(folder_ + "/matmul.te", kTexts[0]);
  (void)WriteFileAtomically(input.path, input.bytes);
  SubprocessOptions options{
      .argv = {kiln_},
      .env = {"KILN_DB=" + db, "KILN_SCHEDULER=", "KILN_TRACKER=", "NO_COLOR=1"},
      .output = SubprocessOptions::Stream::kPipe,
      .error = SubprocessOptions::Stream::kPipe};
  options.argv.insert(options.argv.end(), input.words.begin(), input.words.end());
  const auto result = RunToEnd(std::move(options), {}, absl::Seconds(kMostSeconds));
  if (!result.ok()) return fail("hang", Message(result.status()));
  if (result->exit.signal != 0)
    return fail("crash", result->exit.ToString() + "\n" + result->error);
  for (const std::string_view sign :
       {"check failed", "killed by signal", "AddressSanitizer", "runtime error:"}) {
    if (result->error.find(sign) != std::string::npos) return fail("crash", result->error);
  }
  if (result->exit.max_rss_bytes > kMostBytes)
    fail("growth", fmt::format("{} bytes", result->exit.max_rss_bytes));
}

}  // namespace kiln::fuzz
