#include "tests/fuzz/fuzz_cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/spoil_database.h"

namespace kiln::fuzz {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kTextWords[] = {
    "input ", "let ", "sum(k: 8) ", "if(",           "select(",       "min(",
    " // ",   " % ",  "0 - ",       "@flop(1)",      "[i: 8]",        "float64(",
    "int8[]", "A[",   "k",          "1 << 40",       "`a b`",         "exp(",
    "pow(",   "true", "X'1",        "@keep_order\n", "1099511627776", "#"};
constexpr std::string_view kStepWords[] = {"[\"SP\", 2, 0, 16, [1, 1, 1], 1], ",
                                           "[\"CI\", 3], ",
                                           "[\"CA\", 2, 3, 1], ",
                                           "[\"RF\", 2, 2, 0], ",
                                           "[\"XX\"]",
                                           "[\"CHW\", 2, \"local\"], ",
                                           "[\"AN\", 3, 0, 6], ",
                                           "[\"SA\", 1, 0, 8, 4]",
                                           "null",
                                           ", "};
constexpr std::string_view kTaskList =
    "1 matmul 16,16,16\n2 dense 8,8,8 bias,relu\n# comment\n1 max_pool2d_nhwc 1,8,8,4,2,2,2,0 "
    "network=bert\n1 conv2d_nhwc 1,6,6,4,4,3,3,1,1 variants=all\n";
constexpr std::string_view kTargets[] = {"llvm", "cuda -arch=sm_90", "null"};

constexpr std::string_view kFlagWords[] = {
    "--args",      "--dtype",   "--out-dtype", "--epilogue", "--target", "--db",       "--json",
    "--as",        "--op",      "--record",    "--task",     "--steps",  "--sketches", "--job",
    "--workload",  "--errors",  "-o",          "--help",     "--trials", "--seed",     "--policy",
    "--parameter", "--weights", "--number",    "--name",     "--since",  "--top",      "--device",
    "--limit",     "--timing",  "--all",       "--keep",     "--yes",    "--variants", "--resume"};
constexpr std::string_view kValues[] = {
    "16,16,16",         "float32", "float99", "relu",  "llvm",        "null",
    "cuda -arch=sm_90", "steps",   "program", "none",  "conv2d_nhwc", "matmul",
    "eps_greedy=nan",   "empty",   "",        "-",     "/dev/null",   "network:resnet-18",
    "x.onnx",           "12h",     "dag",     "loops", "1",           "cuda"};
// None of these commands serves or runs for long.
const std::vector<Words> kCommands = {
    {"best", "--op", "matmul", "--args", "16,16,16"},
    {"show", "1", "--as", "schedule"},
    {"show", "--op", "matmul", "--args", "16,16,16", "--steps", "none", "--as", "program"},
    {"jobs"},
    {"check", "matmul", "--args", "16,16,16"},
    {"ops", "conv2d_nhwc"},
    {"records", "export"},
    {"records", "stats"},
    {"records", "list", "--top", "3"},
    {"records", "distill"},
    {"records", "delete", "--yes", "1"},
    {"choice", "query", "--op", "matmul", "--args", "16,16,16", "--target", "null"},
    {"choice", "pin", "1"},
    {"choice", "unpin", "1"},
    {"choice", "list"},
    {"cancel"},
    {"why"},
    {"help", "tune"},
    {"export-kernel", "1"},
    {"tune", "matmul", "--args", "16,16,16", "--target", "null", "--trials", "0"}};

// Spoils a text so that it mostly stays a text of its kind.
std::string Spoiled(std::string_view text, std::string_view other, std::string_view separator,
                    std::span<const std::string_view> dictionary, Rng& rng) {
  const double how = UniformReal(rng);
  if (how < 0.3) return ReplaceEverywhere(text, rng);
  if (how < 0.5) return ChangeListHead(text, rng);
  if (how < 0.8) return MutatePieces(text, other, separator, rng);
  return MutateText(text, other, dictionary, Chance(rng, 0.02) ? 1 << 20 : 1 << 14, rng);
}

std::string Target(Rng& rng) { return std::string(PickFrom(rng, std::span(kTargets))); }

void RemoveDatabase(const std::string& path) {
  for (const char* end : {"", "-wal", "-shm", "-journal", ".lock"}) (void)RemoveFile(path + end);
}

SubprocessOptions Options(const std::string& kiln, const Words& words, const std::string& db) {
  SubprocessOptions options;
  options.argv = {kiln};
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  options.env = {"KILN_DB=" + db, "KILN_SCHEDULER=",   "KILN_TRACKER=",
                 "KILN_KEYS=",    "KILN_SECRET_FILE=", "NO_COLOR=1"};
  options.output = options.error = SubprocessOptions::Stream::kPipe;
  // The limit stops a program that grows without end before the machine suffers.
  options.limits.data_bytes = 4 * kMaxBytes;
  return options;
}

}  // namespace

StatusOr<CliFuzzer> CliFuzzer::Make(std::string kiln, std::string folder, double most_s,
                                    const Corpus& corpus) {
  CliFuzzer fuzzer(std::move(kiln), std::move(folder), most_s, corpus);
  KILN_RETURN_IF_ERROR(MakeDirs(fuzzer.folder_));
  KILN_RETURN_IF_ERROR(fuzzer.MakeDatabase());
  return fuzzer;
}

std::string CliFuzzer::Path(std::string_view name) const { return JoinPath(folder_, name); }

// Makes a database with a job, its records, and imported records.
Status CliFuzzer::MakeDatabase() {
  const std::string db = Path("valid.db"), log = Path("valid.json"), list = Path("valid.tasks");
  std::string lines;
  for (size_t i = 0; i < corpus_->seeds().size(); i += 7) lines += corpus_->seeds()[i].line;
  KILN_RETURN_IF_ERROR(WriteFileAtomically(log, lines));
  KILN_RETURN_IF_ERROR(WriteFileAtomically(list, kTaskList));
  const std::vector<Words> makers = {
      {"records", "import", log, "--db", db},
      {"tune", "--tasks", list, "--target", "null", "--trials", "20", "--db", db, "--quiet"},
      {"jobs", "--json", "--limit", "1", "--db", db}};
  for (const Words& words : makers) {
    KILN_ASSIGN_OR_RETURN(const RunResult made,
                          RunToEnd(Options(kiln_, words, db), {}, absl::Minutes(10)));
    if (!made.exit.ok()) {
      return Internal("kiln {}: {}: {}", fmt::join(words, " "), made.exit.ToString(), made.error);
    }
    const size_t id = made.output.find("\"id\":\"");
    if (id != std::string::npos) job_ = made.output.substr(id + 6, 8);
  }
  KILN_ASSIGN_OR_RETURN(database_, ReadFile(db));
  return OkStatus();
}

// ---- the kinds of inputs --------------------------------------------------------------------

std::string CliFuzzer::SpoiledText(Rng& rng) const {
  return Spoiled(corpus_->Pick(rng).text, corpus_->Pick(rng).text, "\n", kTextWords, rng);
}

CliFuzzer::Input CliFuzzer::Text(Rng& rng) const {
  const std::string te = Path("input.te");
  switch (UniformInt(rng, 6)) {
    case 0:
    case 1:
      return {"text: check", {"check", te}, te, SpoiledText(rng)};
    case 2:
    case 3:
      return {"text: show",
              {"show", "--op", te, "--steps", "none", "--as",
               Chance(rng, 0.5) ? "program" : "loops", "--target", Target(rng)},
              te,
              SpoiledText(rng)};
    case 4:
      return {"text: sketches",
              {"show", te, "--sketches", "--target", Target(rng)},
              te,
              SpoiledText(rng)};
    default:
      return {"text: tune",
              {"tune", te, "--target", "null", "--trials", "1", "--policy", "sketch.random", "--db",
               Path("tuned.db")},
              te,
              SpoiledText(rng)};
  }
}

CliFuzzer::Input CliFuzzer::Steps(Rng& rng) const {
  constexpr std::string_view kForms[] = {"program", "loops", "schedule", "steps", "llvm"};
  const Seed& seed = corpus_->Pick(rng);
  (void)WriteFileAtomically(Path("seed.te"), seed.text);
  return {"steps: show",
          {"show", "--op", Path("seed.te"), "--steps", Path("input"), "--as",
           std::string(PickFrom(rng, std::span(kForms))), "--target", "llvm"},
          Path("input"),
          Spoiled(seed.steps, corpus_->Pick(rng).steps, "], ", kStepWords, rng)};
}

CliFuzzer::Input CliFuzzer::Log(Rng& rng) const {
  std::string lines;
  for (int64_t i = UniformIn(rng, 1, 4); i > 0; --i) lines += corpus_->Pick(rng).line;
  const std::string_view separator = Chance(rng, 0.3) ? "\n" : ", ";
  const std::string spoiled = Spoiled(lines, corpus_->Pick(rng).line, separator, kStepWords, rng);
  const std::string path = Path("input");
  const double kind = UniformReal(rng);
  if (kind < 0.2) return {"log: distill", {"records", "distill", path}, path, spoiled};
  if (kind < 0.25) {
    return {"log: measure",
            {"records", "measure", path, "--target", "llvm", "--number", "1", "--timeout-ms", "500",
             "--build-timeout-ms", "1500"},
            path,
            spoiled.substr(0, spoiled.find('\n') + 1)};
  }
  return {
      "log: import",
      {"records", "import", path, "--db", Path("imported.db"), "--rejected", Path("rejected.json")},
      path,
      spoiled};
}

CliFuzzer::Input CliFuzzer::Tasks(Rng& rng) const {
  const std::string path = Path("input");
  const std::string list = Spoiled(kTaskList, corpus_->Pick(rng).op + "\n",
                                   Chance(rng, 0.5) ? "\n" : " ", kTextWords, rng);
  return {"task list: tune",
          {"tune", "--tasks", path, "--target", "null", "--trials", Chance(rng, 0.7) ? "0" : "2",
           "--policy", "empty", "--db", Path("tuned.db")},
          path,
          list};
}

CliFuzzer::Input CliFuzzer::Flags(Rng& rng) const {
  Input input{"flags", PickFrom(rng, kCommands), Path("input.db"), database_};
  for (int64_t i = UniformIn(rng, 1, 3); i > 0; --i) {
    std::string word(Chance(rng, 0.5) ? PickFrom(rng, std::span(kFlagWords))
                                      : PickFrom(rng, std::span(kValues)));
    if (Chance(rng, 0.2)) word = MutateText(word, job_, kValues, 1000, rng);
    if (Chance(rng, 0.1)) word = ExtremeNumber(rng);
    word.resize(std::min(word.size(), word.find('\0')));
    const auto at = input.words.begin() + UniformIn(rng, 1, std::ssize(input.words));
    if (at != input.words.end() && Chance(rng, 0.4)) {
      *at = std::move(word);
    } else {
      input.words.insert(at, std::move(word));
    }
  }
  return input;
}

Words CliFuzzer::Reader(Rng& rng) const {
  const std::vector<Words> readers = {{"jobs"},
                                      {"jobs", job_},
                                      {"jobs", job_, "--timing"},
                                      {"best", "import"},
                                      {"best", job_},
                                      {"records", "export"},
                                      {"records", "stats"},
                                      {"records", "distill"},
                                      {"records", "list"},
                                      {"records", "delete", "--yes", "2"},
                                      {"choice", "query", job_, "--as", "program"},
                                      {"choice", "pin", job_},
                                      {"choice", "list"},
                                      {"cancel", job_},
                                      {"show", "1"},
                                      {"show", job_, "--as", "program"},
                                      {"tune", "--resume", job_},
                                      {"tune", "matmul", "--args", "16,16,16", "--target", "null",
                                       "--trials", "2", "--policy", "sketch.random"}};
  Words words = PickFrom(rng, readers);
  words.insert(words.end(), {"--db", Path("input.db")});
  return words;
}

CliFuzzer::Input CliFuzzer::DatabaseBytes(Rng& rng) const {
  Input input{"database: bytes", Reader(rng), Path("input.db"), database_};
  for (int64_t i = UniformIn(rng, 1, 20); i > 0; --i) {
    input.bytes[static_cast<size_t>(UniformInt(rng, std::ssize(input.bytes)))] =
        static_cast<char>(rng());
  }
  if (Chance(rng, 0.2))
    input.bytes.resize(static_cast<size_t>(UniformInt(rng, std::ssize(input.bytes))));
  return input;
}

CliFuzzer::Input CliFuzzer::DatabaseValues(Rng& rng) const {
  Input input{"database: values", Reader(rng), Path("input.db"), database_};
  RemoveDatabase(input.path);
  (void)WriteFileAtomically(input.path, database_);
  const Status spoiled = SpoilDatabase(input.path, rng);
  KILN_CHECK(spoiled.ok(), "{}", Message(spoiled));
  RemoveDatabase(input.path + "-spoiled");
  auto bytes = ReadFile(input.path);
  if (bytes.ok()) input.bytes = *std::move(bytes);
  return input;
}

CliFuzzer::Input CliFuzzer::MakeInput(Rng& rng) const {
  // Weights by the size of the parser, and by the time of a run.
  const double weights[] = {6, 5, 4, 2, 3, 2, 4};
  switch (PickWeighted(rng, weights)) {
    case 0:
      return Text(rng);
    case 1:
      return Steps(rng);
    case 2:
      return Log(rng);
    case 3:
      return Tasks(rng);
    case 4:
      return Flags(rng);
    case 5:
      return DatabaseBytes(rng);
    default:
      return DatabaseValues(rng);
  }
}

// ---- the run --------------------------------------------------------------------------------

void CliFuzzer::Run(uint64_t seed, Report& report) const {
  Rng rng(seed);
  const Input input = MakeInput(rng);
  const std::string db = Path("input.db");
  RemoveDatabase(db);
  (void)WriteFileAtomically(input.path, input.bytes);
  const auto find = [&](std::string_view what, std::string_view how) {
    std::vector<std::string> words;
    for (const std::string& word : input.words) {
      words.push_back(fmt::format("'{}'", word == input.path ? report.PathFor(what) : word));
    }
    report.Find(what, fmt::format("kiln {}\n{}", fmt::join(words, " "), how), input.bytes);
  };
  const double start_s = Clock::Real().MonotonicSeconds();
  const auto result = RunToEnd(Options(kiln_, input.words, db), {}, absl::Seconds(most_s_));
  const double took_s = Clock::Real().MonotonicSeconds() - start_s;
  if (!result.ok()) {
    report.Count(input.kind, false, took_s);
    return find("hang", Message(result.status()));
  }
  report.Count(input.kind, result->exit.ok(), took_s, result->exit.max_rss_bytes);
  if (result->exit.signal != 0)
    return find("crash", result->exit.ToString() + "\n" + result->error);
  for (const std::string_view sign :
       {"check failed", "killed by signal", "Sanitizer", "runtime error:", "terminate called"}) {
    if (result->error.find(sign) != std::string::npos) return find("crash", result->error);
  }
  if (result->exit.code != 0 && result->error.empty() && result->output.empty()) {
    return find("silence", result->exit.ToString());
  }
  if (result->exit.cpu_s > kMaxCpu_s) {
    return find("hang", fmt::format("{:.1f} s of CPU time", result->exit.cpu_s));
  }
  if (result->exit.max_rss_bytes > kMaxBytes) {
    find("growth", fmt::format("{} MiB", result->exit.max_rss_bytes >> 20));
  }
}

}  // namespace kiln::fuzz
