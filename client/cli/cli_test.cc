// The command line of the real binary: wrong usage, and commands that need no cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file/file.h"
#include "base/text/shell_word.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

class CliTest : public KilnTest {
 protected:
  std::string RefusedTune(Words words) {
    words.insert(words.begin(), "tune");
    words.insert(words.end(), {"--db", folder_.Join("none.db")});
    const std::string error = Refused(words);
    EXPECT_FALSE(FileExists(folder_.Join("none.db"))) << "nothing is left behind";
    return error;
  }
};

TEST_F(CliTest, HelpListsEveryCommand) {
  const std::string help = KilnPrints({"--help"});
  for (const char* command :
       {"local",     "tune",    "submit", "jobs",     "why",    "watch",   "cancel",
        "calibrate", "workers", "best",   "show",     "trial",  "records", "choice",
        "ops",       "check",   "tasks",  "schedule", "doctor", "version", "tracker",
        "scheduler", "builder", "runner", "templates"}) {
    EXPECT_THAT(help, HasSubstr(std::string("  ") + command + " ")) << command;
  }
  EXPECT_THAT(KilnPrints({"tune", "--help"}), HasSubstr("--trials"));
  for (const char* daemon : {"tracker", "scheduler", "builder", "runner"}) {
    EXPECT_THAT(KilnPrints({daemon, "--help"}), HasSubstr("--port-file")) << daemon;
  }
}

TEST_F(CliTest, HelpOfACommandIsItsFlags) {
  EXPECT_EQ(KilnPrints({"help"}), KilnPrints({"--help"}));
  EXPECT_EQ(KilnPrints({"help", "help"}), KilnPrints({"--help"}));
  EXPECT_EQ(KilnPrints({"help", "tune"}), KilnPrints({"tune", "--help"}));
  EXPECT_EQ(KilnPrints({"help", "records", "import"}), KilnPrints({"records", "import", "--help"}));
  EXPECT_THAT(KilnPrints({"help", "runner"}), HasSubstr("Usage: kiln runner "));
  EXPECT_THAT(Refused({"help", "tnue"}), HasSubstr("did you mean tune?"));
}

TEST_F(CliTest, ACommandThatIsNotNamedIsAnsweredByTheHelp) {
  EXPECT_EQ(KilnPrints({}), KilnPrints({"help"}));
  EXPECT_EQ(KilnPrints({"records"}), KilnPrints({"help", "records"}));
  EXPECT_EQ(KilnPrints({"model"}), KilnPrints({"help", "model"}));
  EXPECT_THAT(Refused({"records", "exprot"}), HasSubstr("did you mean export?"));
}

TEST_F(CliTest, TheOptionsThatMatterStandFirst) {
  const std::string help = KilnPrints({"help", "tune"});
  size_t at = help.find("Most used:\n");
  ASSERT_NE(at, std::string::npos);
  for (const char* option : {"--args", "--target", "--trials", "--minutes", "--db"}) {
    const size_t here = help.find(std::string("  ") + option, at);
    EXPECT_NE(here, std::string::npos) << option;
    at = here;
  }
  EXPECT_LT(at, help.find("--help")) << "before all others";
}

TEST_F(CliTest, HelpIsInPlainWordsAndFitsEightyColumns) {
  for (const Words& command : std::vector<Words>{{},
                                                 {"tune"},
                                                 {"submit"},
                                                 {"best"},
                                                 {"show"},
                                                 {"records", "measure"},
                                                 {"choice", "query"},
                                                 {"choice", "pin"},
                                                 {"keys", "issue"},
                                                 {"keys", "revoke"},
                                                 {"selftest"},
                                                 {"conformance"},
                                                 {"tracker"},
                                                 {"scheduler"},
                                                 {"builder"},
                                                 {"runner"}}) {
    Words words = command;
    words.push_back("--help");
    const std::string help = KilnPrints(words);
    for (const char* raw : {"UINT", "INT:", "FLOAT", " in [", "POSITIVE", "NONNEGATIVE"}) {
      EXPECT_THAT(help, Not(HasSubstr(raw)));
    }
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 81u) << line;
  }
}

TEST_F(CliTest, SelftestOfADeviceThatIsNoneFails) {
  EXPECT_THAT(Refused({"selftest", "--device", "x"}),
              AllOf(HasSubstr("device x: "), HasSubstr("'x' is no device")));
}

TEST_F(CliTest, RangesAndTolerancesAreChecked) {
  const std::string log = File("log.te", "input x: float32[8]\ny[i: 8] = log(x[i])\n");
  EXPECT_THAT(RefusedTune({log, "--input-range", "z=1:2"}),
              HasSubstr("--input-range z=1:2: log.te: there is no input z, expected one of: x"));
  EXPECT_THAT(RefusedTune({log, "--input-range", "x=2:1"}), HasSubstr("range [2, 1) of input x"));
  EXPECT_THAT(RefusedTune({log, "--input-range", "x"}), HasSubstr("expected NAME=LOW:HIGH"));
  EXPECT_THAT(RefusedTune({log, "--tolerance", "-1"}), HasSubstr("--tolerance"));
  EXPECT_THAT(RefusedTune({log, "--tolerance", "1,2,3"}), HasSubstr("--tolerance"));
}

TEST_F(CliTest, WrongUsageNamesTheHelp) {
  EXPECT_THAT(Refused({"tnue"}),
              AllOf(HasSubstr("no command 'tnue', did you mean tune?"), HasSubstr("kiln --help")));
  EXPECT_THAT(Refused({"xyzzy"}), HasSubstr("no command 'xyzzy'; there are: tune, submit"));
  EXPECT_THAT(Refused({"tune", "--no-such-flag"}), HasSubstr("kiln tune --help"));
  EXPECT_EQ(Refused({"tune", "matmul", "--trails", "5"}),
            "kiln: there is no flag --trails, did you mean --trials? See kiln tune --help\n");
  EXPECT_EQ(Refused({"records", "exprot"}),
            "kiln: there is no command 'exprot', did you mean export? See kiln records --help\n");
  EXPECT_EQ(RunKiln({"runner", "--trakcer", "x:1"}).error,
            "runner: there is no flag --trakcer, did you mean --tracker? See kiln runner --help\n");
  EXPECT_THAT(Refused({"tune", "matmul", "--trials", "-1"}), HasSubstr("trials"));
  EXPECT_THAT(Refused({"tune", "matmul", "--minutes", "-1"}), HasSubstr("minutes"));
  EXPECT_THAT(Refused({"tune", "matmul", "--trials", "many"}), HasSubstr("trials"));
  EXPECT_THAT(Refused({"tune", "matmul", "--args", "8,8,8", "--seed", "-1"}),
              HasSubstr("--seed: -1 is below 0, expected a whole number from 0"));
  EXPECT_THAT(Refused({"show", "--as", "ptx"}),
              HasSubstr("--as: ptx not in {dag,steps,schedule,tvm,loops,"));
  EXPECT_THAT(Refused({"jobs", "--db", "a.db", "--scheduler", "b:1"}), HasSubstr("exclude"));
}

TEST_F(CliTest, NoTrialsShowWhatWouldBeTuned) {
  const std::string db = folder_.Join("none.db");
  const Words words = {"tune", "matmul", "--args", "64,64,64", "--trials", "0", "--db", db};
  const std::string shown = KilnPrints(words);
  EXPECT_THAT(shown, AllOf(HasSubstr("matmul 64,64,64"), HasSubstr("0.0005243"),
                           HasSubstr("48.00 KiB"), HasSubstr("nothing is tuned")));
  Words json_words = words;
  json_words.push_back("--json");
  const std::string json = KilnPrints(json_words);
  EXPECT_THAT(json, AllOf(HasSubstr("\"flop_count\":524288"), HasSubstr("\"weight\":1,"),
                          HasSubstr("\"argument_bytes\":49152"), HasSubstr("\"sketches\":")));
  EXPECT_FALSE(FileExists(db));
  EXPECT_THAT(KilnPrints({"submit", "matmul", "--args", "64,64,64", "--trials", "0", "--target",
                          "llvm", "--scheduler", "127.0.0.1:1"}),
              HasSubstr("nothing is tuned"));
}

TEST_F(CliTest, WhatIsWrongWithSeveralTasks) {
  const std::string file = File("a.te", "input A: float32[8]\nB[i: 8] = A[i] * 2.0\n");
  EXPECT_THAT(RefusedTune({file, "matmul"}), HasSubstr("found 'matmul' after"));
  EXPECT_THAT(RefusedTune({file, file, "--weights", "1,2,3"}), HasSubstr("3 numbers for 2 tasks"));
  EXPECT_THAT(RefusedTune({"--tasks", File("net.txt", "1 matmull 8,8,8\n")}),
              HasSubstr("net.txt:1:"));
  EXPECT_THAT(RefusedTune({"matmul", "--tasks", file}), HasSubstr("leave out 'matmul'"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,8,8", "--parameter", "eps_greedy"}),
              HasSubstr("expected NAME=NUMBER"));
}

TEST_F(CliTest, FormsAndObjectivesThatThereAreNot) {
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,8,8", "--variants", "winograd"}),
              HasSubstr("matmul has no winograd variant: conv2d_nhwc has one for 3x3 kernels"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,8,8", "--variants", "fast"}), HasSubstr("fast"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,8,8", "--objective", "median"}),
              HasSubstr("geometric-mean"));
}

TEST_F(CliTest, UnknownOperatorsGetTheClosestNames) {
  EXPECT_THAT(RefusedTune({"conv2d_ncwh", "--args", "1,7,7,8,8,3,3,1,1"}),
              HasSubstr("conv2d_nchw"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,8,8", "--epilogue", "rleu"}), HasSubstr("relu"));
  EXPECT_LT(RefusedTune({"xyzzy", "--args", "8"}).size(), 100u) << "no list of all operators";
}

TEST_F(CliTest, NetworksThatThereAreNot) {
  EXPECT_THAT(RefusedTune({"network:resnet-81"}), HasSubstr("did you mean resnet-18"));
  EXPECT_THAT(RefusedTune({"none.onnx"}), HasSubstr("none.onnx"));
  EXPECT_THAT(RefusedTune({"net.pt"}), HasSubstr("export it as net.onnx"));
  EXPECT_THAT(RefusedTune({"network:mlp", "--weights", "1,2"}), HasSubstr("leave out --weights"));
  EXPECT_THAT(Refused({"check", "network:mlp"}), HasSubstr("network:mlp is a network"));
  EXPECT_THAT(Refused({"tasks", "matmul"}), HasSubstr("matmul is no network"));
}

TEST_F(CliTest, NetworksWithoutTheirPrefixAreGuessed) {
  const std::string db = folder_.Join("kiln.db");
  KilnPrints(
      {"tune", "matmul", "--args", "8,8,8", "--target", "null", "--trials", "1", "--db", db});
  for (const char* name : {"resnet-18", "resnet18", "ResNet-18", "resnet_18"}) {
    EXPECT_THAT(RefusedTune({name, "--trials", "4"}), HasSubstr("did you mean network:resnet-18"));
    EXPECT_THAT(Refused({"tasks", name}), HasSubstr("did you mean network:resnet-18"));
    EXPECT_THAT(Refused({"compile", name, "--target", "llvm", "--db", folder_.Join("none.db")}),
                HasSubstr("did you mean network:resnet-18"));
    EXPECT_THAT(Refused({"best", name, "--db", db}), HasSubstr("did you mean network:resnet-18"));
    EXPECT_THAT(Refused({"ops", name}), HasSubstr("did you mean network:resnet-18"));
  }
  EXPECT_THAT(RefusedTune({"bert"}), HasSubstr("network:bert-base"));
  EXPECT_THAT(RefusedTune({"matmull", "--args", "8,8,8"}), HasSubstr("did you mean matmul"));
}

TEST_F(CliTest, ALayoutChoosesTheOperatorOrTheNetworks) {
  const auto key = [](const Words& words) {
    Words all = {"check"};
    all.insert(all.end(), words.begin(), words.end());
    all.emplace_back("--json");
    return Json::parse(KilnPrints(all))["workload_key"];
  };
  const std::string args = "1,8,8,4,4,3,3,1,1";
  const Json nhwc = key({"conv2d_nhwc", "--args", args});
  EXPECT_EQ(key({"conv2d", "--args", args, "--layout", "NHWC"}), nhwc);
  EXPECT_EQ(key({"conv2d", "--args", args, "--layout", "nhwc"}), nhwc);
  EXPECT_EQ(key({"conv2d_nhwc", "--args", args, "--layout", "NHWC"}), nhwc);
  EXPECT_EQ(key({"conv2d", "--args", args, "--layout", "NCHW"}), key({"conv2d", "--args", args}));
  EXPECT_THAT(Refused({"check", "conv2d_nchw", "--args", args, "--layout", "NHWC"}),
              HasSubstr("conv2d_nchw is NCHW; the operator of that layout is conv2d_nhwc"));
  EXPECT_THAT(Refused({"check", "matmul", "--args", "8,8,8", "--layout", "NHWC"}),
              HasSubstr("matmul has no layouts"));
  EXPECT_THAT(Refused({"check", "conv2d", "--args", args, "--layout", "NWC"}),
              HasSubstr("expected one of: NCHW, NHWC"));
  const auto tasks = [](const std::string& layout) {
    return KilnPrints({"tasks", "network:squeezenet_v1.1", "--layout", layout, "--json"});
  };
  EXPECT_EQ(tasks("NCHW"), tasks("nchw"));
  EXPECT_EQ(RunKiln({"tasks", "network:squeezenet_v1.1", "--layout", "NWC"}).exit.code, 1);
}

TEST_F(CliTest, ScheduleOfANetworkNamesCompile) {
  EXPECT_THAT(Refused({"schedule", "network:resnet-18"}),
              HasSubstr("kiln compile network:resnet-18 makes a file of all of its kernels"));
}

TEST_F(CliTest, AnOperatorWithoutArgumentsListsItsBest) {
  const std::string db = folder_.Join("kiln.db");
  EXPECT_THAT(Refused({"best", "matmul", "--no-default-records", "--db", db}),
              HasSubstr("no database"));
  for (const char* args : {"8,8,8", "16,8,8"}) {
    KilnPrints({"tune", "matmul", "--args", args, "--target", "null", "--trials", "2", "--db", db});
  }
  const std::string best = KilnPrints({"best", "matmul", "--no-default-records", "--db", db});
  EXPECT_THAT(best, AllOf(HasSubstr("matmul 8,8,8"), HasSubstr("matmul 16,8,8"),
                          HasSubstr("best matmul --args ...")));
  const std::string lines =
      KilnPrints({"best", "matmul", "--no-default-records", "--db", db, "--json"});
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_THAT(Refused({"best", "softmax", "--no-default-records", "--db", db}),
              AllOf(HasSubstr("no record of softmax"), HasSubstr("softmax takes ")));
}

TEST_F(CliTest, CompileTakesTheValuesOfParams) {
  const std::string text =
      File("scaled.te", "param N\ninput x: float32[N]\ny[i: N] = x[i] * 0.5\n");
  const std::string file = folder_.Join("scaled.kiln"), db = folder_.Join("none.db");
  KilnPrints({"compile", text, "--let", "N=24", "--target", "llvm", "--db", db, "-o", file});
  EXPECT_THAT(KilnPrints({"run", file, "--random"}), HasSubstr("y: float32[24]"));
  EXPECT_THAT(Refused({"compile", text, "--target", "llvm", "--db", db, "-o", file}),
              HasSubstr("--let N="));
  EXPECT_THAT(Refused({"compile", "network:mlp", "--let", "N=24", "--target", "llvm", "--db", db}),
              HasSubstr("--let N=24: network:mlp is a network"));
}

TEST_F(CliTest, AUserWithoutAVariableHasTheNameOfHisAccount) {
  const std::string db = folder_.Join("kiln.db");
  SubprocessOptions options = KilnOptions({"tune", "matmul", "--args", "8,8,8", "--target", "null",
                                           "--trials", "1", "--db", db, "--json"});
  options.env.emplace_back("USER=");
  const auto tuned = RunToEnd(std::move(options), {}, absl::Minutes(1));
  ASSERT_OK(tuned);
  const std::string job = JsonLines(tuned->output).at(0)["job"];
  EXPECT_THAT(KilnPrints({"jobs", job, "--db", db}),
              AllOf(HasSubstr("\nuser "), Not(HasSubstr("unknown"))));
}

TEST_F(CliTest, ProductsOfOtherResultsAreCalledOtherwise) {
  const std::string db = folder_.Join("kiln.db");
  const Words tune = {"tune",     "matmul", "--args",  "16,16,16", "--target", "null",
                      "--trials", "1",      "--dtype", "float16",  "--db",     db};
  Words wide = tune;
  wide.insert(wide.end(), {"--out-dtype", "float32"});
  EXPECT_THAT(KilnPrints(tune), HasSubstr("matmul 16,16,16 float16,"));
  EXPECT_THAT(KilnPrints(wide), HasSubstr("matmul 16,16,16 float16 -> float32,"));
}

TEST_F(CliTest, TasksOfANetwork) {
  EXPECT_THAT(KilnPrints({"tasks", "network:mlp", "--target", "llvm"}),
              AllOf(HasSubstr("matmul 1,784 x 512,784 + add + relu"),
                    HasSubstr("4 tasks, 1,071,666 FLOPs in all")));
  EXPECT_THAT(KilnPrints({"tasks", "network:mlp", "--as", "graph"}),
              HasSubstr("input data: float32[1, 784]"));
  EXPECT_THAT(KilnPrints({"tasks", "network:mlp", "--dag"}),
              HasSubstr("input p0: float32[1, 784]"));
  const std::string file = File("net.graph", "input x: float32[4, 8]\ny = softmax(x)\noutput y\n");
  EXPECT_THAT(KilnPrints({"tasks", file}), HasSubstr("softmax 4,8"));
}

// Both commands number the rows alike, and say why there are more rows than tasks.
TEST_F(CliTest, TasksAndTuneShowTheSameRows) {
  const auto tasks_of = [](const std::string& text) {
    std::vector<std::string> rows;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const size_t id = line.find_first_not_of(' ');
      const bool is_row = id != std::string::npos && std::isdigit(line[id]) && id < 4 &&
                          line.find(" rows, ") == std::string::npos;
      if (is_row) rows.push_back(line.substr(id, line.find(' ', id) - id));
    }
    return rows;
  };
  const std::string tasks = KilnPrints({"tasks", "network:resnet-18", "--target", "llvm"});
  const std::string preview =
      KilnPrints({"tune", "network:resnet-18", "--target", "llvm", "--trials", "0"});
  const std::string why = "39 rows, 15 of them another way to do the task above";
  EXPECT_THAT(tasks, AllOf(HasSubstr("24 tasks, "), HasSubstr(why)));
  EXPECT_THAT(preview, AllOf(HasSubstr("24 tasks, "), HasSubstr(why)));
  EXPECT_THAT(tasks_of(tasks), testing::Contains("38"));
  EXPECT_THAT(tasks_of(tasks), testing::Not(testing::Contains("39")));
  EXPECT_THAT(tasks_of(preview), testing::Contains("38"));
}

TEST_F(CliTest, WeightsOfNetworksArePackedForCpusAndWhereItIsAsked) {
  const auto tasks = [](const std::string& target, const std::string& option) {
    Words words = {"tasks", "network:mlp", "--target", target, "--json"};
    if (!option.empty()) words.insert(words.end(), {"--layout-rewrite", option});
    return KilnPrints(words);
  };
  EXPECT_THAT(tasks("llvm", ""), HasSubstr("@packed_placeholders(p1)"));
  EXPECT_EQ(tasks("llvm", "pretransformed"), tasks("llvm", ""));
  EXPECT_THAT(tasks("llvm", "none"), Not(HasSubstr("packed")));
  EXPECT_EQ(tasks("cuda", ""), tasks("cuda", "none"));
  EXPECT_THAT(tasks("cuda", ""), Not(HasSubstr("packed")));
  EXPECT_THAT(tasks("cuda", "pretransformed"), HasSubstr("@packed_placeholders(p1)"));
  for (const char* command : {"tune", "compile"}) {
    EXPECT_THAT(Refused({command, "matmul", "--args", "8,8,8", "--target", "llvm",
                         "--layout-rewrite", "pretransformed"}),
                HasSubstr("--layout-rewrite pretransformed is for networks"));
  }
}

TEST_F(CliTest, ANetworkCompilesAndRuns) {
  const std::string file = folder_.Join("mlp.kiln"), array = folder_.Join("y.npy");
  const Words compile = {"compile", "network:mlp", "--target", "llvm",
                         "-o",      file,          "--db",     folder_.Join("none.db")};
  EXPECT_THAT(KilnPrints(compile),
              AllOf(HasSubstr(", 4 kernels\n"), HasSubstr("4 kernels not tuned: their schedules"),
                    HasSubstr("3 kernels that read their weights packed"),
                    HasSubstr("(each in a place of its own they would take 3.09 KiB)"),
                    Not(HasSubstr("without reuse"))));
  EXPECT_THAT(KilnPrints({"run", file, "--random", "--output", array}),
              HasSubstr("probabilities: float32[1, 10]"));
  EXPECT_TRUE(FileExists(array));
  EXPECT_THAT(KilnPrints({"bench", file, "--repeat", "3", "--min-repeat-ms", "1", "--profile"}),
              AllOf(HasSubstr("median"), HasSubstr("all kernels, each run again and again:"),
                    HasSubstr("all kernels, within runs of the network:")));
  const std::string trace = folder_.Join("trace.json");
  EXPECT_THAT(
      RunKiln({"bench", file, "--repeat", "2", "--min-repeat-ms", "1", "--trace", trace}).error,
      HasSubstr("written to " + trace));
  double end_us = 0;
  int kernels = 0;
  const auto traced = nlohmann::json::parse(*ReadFile(trace));
  for (const nlohmann::json& event : traced["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++kernels;
    EXPECT_GE(event["ts"].get<double>(), end_us - 0.01);
    end_us = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(kernels, 4);
  EXPECT_THAT(KilnPrints({"verify", file, "--kernels"}),
              AllOf(HasSubstr("output probabilities"), HasSubstr("right"),
                    HasSubstr("0 of 1 output wrong, 0 of 4 kernels")));
  EXPECT_THAT(KilnPrints({"verify", file, "--seed", "1", "--expect", array}),
              HasSubstr("0 of 1 output wrong"));
  const RunResult other = RunKiln({"verify", file, "--seed", "2", "--expect", array});
  EXPECT_EQ(other.exit.code, 1);
  EXPECT_THAT(other.output, HasSubstr("WRONG: output probabilities: element"));
  EXPECT_THAT(Refused({"run", file}), HasSubstr("input data (float32[1, 784]) is not given"));
  EXPECT_THAT(Refused({"run", array}), HasSubstr(array));
  Words strict = compile;
  strict.emplace_back("--strict");
  EXPECT_THAT(Refused(strict), HasSubstr("4 of 4 tasks never tuned for llvm"));
}

TEST_F(CliTest, CompilesAModelOfFloat32In16Bits) {
  const std::string model = folder_.Join("small.graph"), file = folder_.Join("small.kiln");
  ASSERT_OK(WriteFile(model,
                      "input x: float32[4, 16]\n"
                      "const w: float32[16, 8] = random(1, -1, 1)\n"
                      "p = matmul(x, w)\n"
                      "y = relu(p)\n"
                      "output y\n"));
  Words words = {"compile",  model,  "--dtype", "float16",
                 "--target", "llvm", "--db",    folder_.Join("none.db"),
                 "-o",       file};
  const std::string printed = KilnPrints(words);
  EXPECT_THAT(printed, AllOf(HasSubstr("float16: 2 nodes; float32: none\n"),
                             HasSubstr("largest difference from float32, random inputs: y ")));
  EXPECT_THAT(KilnPrints({"verify", file, "--kernels"}), HasSubstr("0 of 1 output wrong"));
  words.emplace_back("--skip-difference");
  EXPECT_THAT(KilnPrints(words),
              AllOf(HasSubstr("float16: 2 nodes"), Not(HasSubstr("largest difference"))));
}

TEST_F(CliTest, AnOperatorIsANetworkOfOneKernel) {
  const std::string file = folder_.Join("op.kiln"), db = folder_.Join("none.db");
  EXPECT_THAT(KilnPrints({"compile", "matmul", "--args", "32,48,16", "--epilogue", "relu",
                          "--target", "llvm", "--db", db, "-o", file}),
              AllOf(HasSubstr(", 1 kernel\n"), Not(HasSubstr("0 B")),
                    HasSubstr("1 kernel not tuned: its schedule is chosen without measuring")));
  EXPECT_THAT(KilnPrints({"run", file, "--random"}), HasSubstr("float32[32, 48]"));
  EXPECT_THAT(KilnPrints({"verify", file, "--kernels"}),
              HasSubstr("0 of 1 output wrong, 0 of 1 kernel\n"));
  EXPECT_THAT(KilnPrints({"bench", file, "--repeat", "2", "--min-repeat-ms", "1"}),
              HasSubstr("1 kernel\n"));
  const std::string text = File("half.te", "input x: float32[8]\ny[i: 8] = x[i] * 0.5\n");
  KilnPrints({"compile", text, "--target", "llvm", "--db", db, "-o", file});
  EXPECT_THAT(KilnPrints({"run", file, "--random"}), HasSubstr("y: float32[8]"));
  EXPECT_THAT(Refused({"compile", "matmul", "--args", "8", "--target", "llvm", "--db", db}),
              HasSubstr("matmul takes M,N,K"));
  EXPECT_THAT(Refused({"compile", "matmull", "--target", "llvm", "--db", db}),
              AllOf(HasSubstr("did you mean matmul"), HasSubstr("none.db")));
}

TEST_F(CliTest, ArgumentsThatMakeNoOperator) {
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,8"}), HasSubstr("matmul takes M,N,K"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,8,8,8"}), HasSubstr("matmul takes M,N,K"));
  EXPECT_THAT(RefusedTune({"matmul"}), HasSubstr("matmul takes M,N,K"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,0,8"}),
              HasSubstr("matmul: N = 0, expected 1 to 2147483648"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "-8,8,8"}),
              HasSubstr("matmul: M = -8, expected 1 to 2147483648"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,x,8"}),
              HasSubstr("argument 'x': expected a whole number; several have commas"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "2147483648,2147483648,8"}), HasSubstr("elements"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "99999999999999999999,8,8"}),
              HasSubstr("argument '99999999999999999999': expected a whole number of 64 bits"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,8,8", "--dtype", "float31"}),
              HasSubstr("unknown type 'float31', expected one of float32, float16, "));
}

TEST_F(CliTest, UnknownTargets) {
  EXPECT_EQ(RefusedTune({"matmul", "--args", "8,8,8", "--target", "llmv"}),
            "kiln: unknown target 'llmv', expected llvm, cuda or null\n");
  EXPECT_THAT(
      RefusedTune({"matmul", "--args", "8,8,8", "--target", "llvm -mcp=x"}),
      AllOf(StartsWith("kiln: target llvm has no option 'mcp'; it has: "), HasSubstr(", mcpu, ")));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,8,8", "--target", "cuda -ach=sm_90"}),
              AllOf(StartsWith("kiln: target cuda has no option 'ach'; it has: arch, "),
                    Not(HasSubstr("mcpu"))));
}

TEST_F(CliTest, OutputThatCannotBeWrittenIsSaid) {
  SubprocessOptions options = KilnOptions({});
  options.argv = {"/bin/sh", "-c", std::string(kKiln) + " ops > /dev/full"};
  const auto result = RunToEnd(std::move(options), {}, absl::Minutes(1));
  ASSERT_OK(result);
  EXPECT_EQ(result->exit.code, 1) << result->exit.ToString();
  EXPECT_THAT(result->error, HasSubstr("cannot write the output: No space left on device"));
}

TEST_F(CliTest, MalformedTextFilesHaveAPlace) {
  const std::string path = File("bad.te", "input A: float32[4]\nB[i: 4] = A[i +\n");
  EXPECT_THAT(RefusedTune({path}), MatchesRegex("kiln: .*/bad.te:[23]:[0-9]+: .*\n"));
  EXPECT_THAT(Refused({"check", path}), MatchesRegex("kiln: .*/bad.te:[23]:[0-9]+: .*\n"));
  EXPECT_THAT(Refused({"check", File("empty.te", "")}), HasSubstr("empty.te"));
  EXPECT_THAT(Refused({"check", folder_.Join("none.te")}), HasSubstr("No such file"));
  EXPECT_THAT(Refused({"check", folder_.path() + "/"}), HasSubstr("directory"));
}

TEST_F(CliTest, UnreachableServices) {
  EXPECT_THAT(Refused({"jobs", "--scheduler", "127.0.0.1:1"}),
              AllOf(HasSubstr("cannot reach a scheduler at 127.0.0.1:1: "),
                    HasSubstr("start one with `kiln scheduler` or leave out --scheduler")));
  EXPECT_THAT(Refused({"tune", "matmul", "--args", "8,8,8", "--scheduler", "127.0.0.1:1"}),
              HasSubstr("cannot reach a scheduler at 127.0.0.1:1: "));
  EXPECT_THAT(Refused({"workers", "--tracker", "127.0.0.1:1"}),
              HasSubstr("cannot reach a tracker at 127.0.0.1:1: "));
  EXPECT_THAT(Refused({"jobs", "--scheduler", "nonsense"}), HasSubstr("nonsense"));
  EXPECT_THAT(Refused({"watch", "4f3a"}), HasSubstr("needs a scheduler"));
  EXPECT_THAT(Refused({"submit", "matmul", "--args", "8,8,8"}), HasSubstr("needs a scheduler"));
}

// The default target depends on the machine. All commands have the same one, and print it.
TEST_F(CliTest, TheTargetThatNobodySaysIsSaidFirst) {
  const std::vector<Words> commands = {
      {"tune", "matmul", "--args", "8,8,8", "--trials", "0"},
      {"tasks", "network:squeezenet_v1.1"},
      {"schedule", "matmul", "--args", "8,8,8"},
      {"templates", "dense"},
      {"show", "matmul", "--args", "8,8,8", "--sketches"},
      {"compile", "matmul", "--args", "8,8,8", "--db", folder_.Join("none.db"), "-o",
       folder_.Join("a.kiln")},
  };
  const std::string first = FirstLine(RunKiln(commands[0]).error);
  EXPECT_THAT(first, MatchesRegex("kiln: target (llvm|cuda), since this machine has .*; "
                                  "--target says otherwise"));
  for (Words words : commands) {
    EXPECT_EQ(FirstLine(RunKiln(words).error), first) << words[0];
    words.insert(words.end(), {"--target", "llvm"});
    EXPECT_THAT(RunKiln(words).error, Not(HasSubstr("since"))) << words[0];
  }
}

// The texts of these forms are the same for all targets.
TEST_F(CliTest, WhatNeedsNoTargetAsksForNone) {
  const Words words = {"show", "--op", "matmul", "--args", "8,8,8", "--steps", "none", "--as"};
  for (const char* form : {"dag", "steps", "schedule", "loops"}) {
    Words all = words;
    all.insert(all.end(), {form, "--scheduler", "127.0.0.1:1"});
    EXPECT_EQ(RunKiln(all).error, "") << form;
  }
}

TEST_F(CliTest, DatabasesThatAreNone) {
  const std::string text = File("text.db", "This is no database, but long enough to be one.\n");
  EXPECT_THAT(Refused({"jobs", "--db", text}), HasSubstr("text.db"));
  EXPECT_THAT(Refused({"tune", "matmul", "--args", "8,8,8", "--target", "null", "--db", text}),
              HasSubstr("text.db"));
  EXPECT_THAT(Refused({"jobs", "--db", folder_.Join("none.db")}), HasSubstr("no database at"));
  EXPECT_EQ(*ReadFile(text), "This is no database, but long enough to be one.\n") << "untouched";
}

TEST_F(CliTest, OperatorsAreListedWithTheirParameters) {
  const std::string table = KilnPrints({"ops"});
  for (const char* name : {"matmul", "conv2d_nchw", "softmax", "M,N,K", "bias"}) {
    EXPECT_THAT(table, HasSubstr(name));
  }
  EXPECT_THAT(KilnPrints({"ops", "conv2d_nchw"}), HasSubstr("stride"));
  EXPECT_THAT(Refused({"ops", "matmull"}), HasSubstr("matmul"));
  const Json op = Json::parse(KilnPrints({"ops", "matmul", "--json"}));
  EXPECT_EQ(op["name"], "matmul");
  EXPECT_EQ(op["parameters"].size(), 3u);
}

TEST_F(CliTest, TemplatesAreListedPrintedAndMeasuredOut) {
  EXPECT_THAT(KilnPrints({"templates"}), HasSubstr("conv2d_nchw_direct"));
  EXPECT_THAT(KilnPrints({"templates", "dense", "--target", "llvm"}),
              HasSubstr("template dense for cpu\n"));
  const Words tutorial = {
      "templates", "conv2d_nchw_direct", "--args", "1,7,7,512,512,3,3,1,1", "--target", "cuda"};
  EXPECT_EQ(KilnPrints(tutorial),
            "ConfigSpace (len=10454400, space_map=\n"
            "   0 tile_f: Split(policy=factors, product=512, num_outputs=4) len=220\n"
            "   1 tile_y: Split(policy=factors, product=7, num_outputs=4) len=4\n"
            "   2 tile_x: Split(policy=factors, product=7, num_outputs=4) len=4\n"
            "   3 tile_rc: Split(policy=factors, product=512, num_outputs=3) len=55\n"
            "   4 tile_ry: Split(policy=factors, product=3, num_outputs=3) len=3\n"
            "   5 tile_rx: Split(policy=factors, product=3, num_outputs=3) len=3\n"
            "   6 auto_unroll_max_step: OtherOption([0, 512, 1500]) len=3\n"
            "   7 unroll_explicit: OtherOption([0, 1]) len=2\n"
            ")\n");
  Words point = tutorial;
  point.insert(point.end(), {"--config", "5567092", "--json"});
  const Json config = Json::parse(KilnPrints(point));
  EXPECT_EQ(config["index"], 5567092);
  EXPECT_EQ(config["entity"].size(), 8u);
  EXPECT_EQ(config["entity"][0][0], "tile_f");
  EXPECT_THAT(config["steps"].get<std::string>(), HasSubstr("\"CHW\""));
  point[7] = "10454400";
  EXPECT_THAT(Refused(point), HasSubstr("expected an index from 0 to 10454399"));
}

TEST_F(CliTest, TemplatesOfUsers) {
  const std::string head = "template mine for cpu\nstage C = reduction()\ni, j = axes(C)\n";
  const std::string right =
      File("mine.tmpl", head + "knob t = split(i, outputs=2)\na, b = split(i, t)\n");
  EXPECT_THAT(KilnPrints({"templates", right, "matmul", "--args", "8,8,8", "--target", "llvm"}),
              HasSubstr("ConfigSpace (len=4, space_map=\n   0 t: Split("));
  EXPECT_THAT(Refused({"templates", right, "--args", "8,8,8", "--target", "llvm"}),
              HasSubstr("give the operator"));
  EXPECT_THAT(Refused({"templates", right, "matmul", "--args", "8,8,8", "--target", "cuda"}),
              HasSubstr("template mine is for a CPU, the target is a GPU"));
  const std::string wrong = File("wrong.tmpl", head + "unrol(i)\n");
  EXPECT_THAT(Refused({"templates", wrong, "--target", "llvm"}),
              HasSubstr("wrong.tmpl:4:1: unknown step 'unrol'"));
  EXPECT_THAT(Refused({"templates", "dens"}), HasSubstr("did you mean dense?"));
  EXPECT_THAT(RefusedTune({"matmul", "--args", "8,8,8", "--target", "null", "--template", wrong}),
              HasSubstr("wrong.tmpl:4:1"));

  const auto tune = [&](Words words) {
    words.insert(words.begin(), "tune");
    words.insert(words.end(), {"--target", "null", "--db", folder_.Join("templates.db"), "--json"});
    return KilnPrints(words);
  };
  // The space has four points. The test expects the point that is measured first.
  const std::string events =
      tune({"matmul", "--args", "8,8,8", "--template", right, "--trials", "20"});
  EXPECT_THAT(events, HasSubstr("template mine, config 3"));
  EXPECT_THAT(tune({"--template", "dense", "--args", "8,8,8", "--policy", "template.grid",
                    "--trials", "8"}),
              HasSubstr("template dense, config 1"));
  EXPECT_THAT(
      tune({"batch_matmul", "--args", "2,8,8,8", "--policy", "template.genetic", "--trials", "4"}),
      HasSubstr("template batch_matmul, config "));
}

TEST_F(CliTest, TrialsOfATemplateHaveALineEachWithTheValuesOfItsKnobs) {
  const std::string made =
      File("mine.tmpl",
           "template mine for cpu\nstage C = reduction()\ni, j = axes(C)\n"
           "knob t = split(i, outputs=2)\nrequire t[1] >= 2\na, b = split(i, t)\n");
  const auto tune = [&](const Words& more) {
    Words words = {"tune",     "matmul", "--args",   "8,8,8", "--template", made,
                   "--target", "null",   "--trials", "20",    "--policy",   "template.grid"};
    words.insert(words.end(), more.begin(), more.end());
    return KilnPrints(words);
  };
  const std::string db = folder_.Join("mine.db");
  const std::string said = tune({"--db", db});
  EXPECT_THAT(said, testing::ContainsRegex("trial +[0-9]+ +[0-9.]+ [mun]?s  current/best [0-9.e+]+/"
                                           "[0-9.e+]+ GFLOP/s  [0-9]+/20  .* s  template mine, "
                                           "config 1: t=\\[-1,2\\]"));
  EXPECT_THAT(tune({"--db", folder_.Join("again.db"), "--explain"}),
              AllOf(HasSubstr("template mine, config 2: t=[-1,4]"),
                    HasSubstr("config 0: t=[-1,1]: line 5, column 1")));
  std::string job = said.substr(said.find("job ") + 4);
  job.resize(job.find(':'));
  std::string found;
  for (int trial = 0; trial < 4; ++trial)
    found += KilnPrints({"best", fmt::format("{}/{}", job, trial), "--db", db});
  EXPECT_THAT(found, HasSubstr("template mine, config 1: t=[-1,2]"));
}

TEST_F(CliTest, CheckPrintsTheCanonicalFormThatChecksAgain) {
  const std::string path = File("op.te", "input A:float32[4,8]\nB[i:4]=sum(k:8) A[i,k]*A[i,k]\n");
  const Json first = Json::parse(KilnPrints({"check", path, "--json"}));
  const std::string canonical = File("again.te", first["dag"].get<std::string>());
  EXPECT_EQ(Json::parse(KilnPrints({"check", canonical, "--json"})), first);
  EXPECT_EQ(first["flop_count"], 64);
  EXPECT_THAT(KilnPrints({"check", path}), AllOf(HasSubstr("FLOPs     64"), HasSubstr("workload")));
  EXPECT_THAT(KilnPrints({"check", "matmul", "--args", "8,8,8"}),
              HasSubstr("input p0: float32[8, 8]"));
}

TEST_F(CliTest, ShowNeedsNoRecordForStepsOfAFile) {
  const Words matmul = {"show", "--op", "matmul", "--args", "64,64,64"};
  auto show = [&](const Words& more) {
    Words words = matmul;
    words.insert(words.end(), more.begin(), more.end());
    return KilnPrints(words);
  };
  const std::string steps = File("steps.json", R"([["SP", 2, 0, 64, [8], 1], ["AN", 2, 0, 3]])");
  EXPECT_THAT(show({"--steps", steps, "--as", "schedule"}), HasSubstr("parallel"));
  EXPECT_THAT(show({"--steps", "none", "--as", "program"}), Not(HasSubstr("parallel")));
  EXPECT_THAT(show({"--steps", steps, "--as", "llvm", "--target", "llvm -mcpu=x86-64-v3"}),
              HasSubstr("define"));
  EXPECT_THAT(show({"--as", "dag"}), HasSubstr("input p0"));
}

TEST_F(CliTest, ShowsTheSketchesOfAnOperator) {
  const auto sketches = [&](const std::string& op, const std::string& args,
                            const std::string& target) {
    std::vector<Json> lines;
    const std::string text =
        KilnPrints({"show", op, "--args", args, "--sketches", "--target", target, "--json"});
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      lines.push_back(Json::parse(text.substr(at, end - at)));
      EXPECT_EQ(lines.back()["sketch"], lines.size() - 1);
      EXPECT_GE(lines.back()["tile_sizes"], 1);
      at = end + 1;
    }
    return lines;
  };
  // The sketches are: tiled; with a cache of the result; with a split reduction (split-K).
  EXPECT_EQ(sketches("matmul", "64,64,64", "llvm").size(), 3u);
  EXPECT_EQ(sketches("relu", "64,64", "llvm").size(), 1u);
  EXPECT_GE(sketches("matmul", "64,64,64", "cuda -arch=sm_90").size(), 1u);
  // An extent of 4 is split into 4 levels twice and into 2 levels once, the innermost at most 64:
  // 10 * 10 * 3.
  const Json small = sketches("matmul", "4,4,4", "llvm")[0];
  EXPECT_EQ(small["tile_sizes"], 300);
  ASSERT_EQ(small["blanks"].size(), 3u);
  EXPECT_EQ(small["blanks"][2], Json::parse(R"({"axis": "T_matmul_NN_k", "extent": 4, "lengths": 1,
                                               "ways": 3, "values": [1, 2, 4]})"));

  const std::string text = KilnPrints({"show", "matmul", "--args", "64,64,64", "--sketches"});
  EXPECT_THAT(text,
              AllOf(HasSubstr("sketch 0: 4 steps, 49,392 points"), HasSubstr("sketch 2: "),
                    HasSubstr("T_matmul_NN_i: 64 = ? * ? * ? * ?  84 ways; 1, 2, 4, 8, 16, 32, 64"),
                    HasSubstr("T_matmul_NN_k: 64 = ? * ?  7 ways; 1, 2, 4, 8, 16, 32, 64"),
                    HasSubstr("factors=[?, ?, ?]"), HasSubstr("for k.1 (?)")));
  EXPECT_THAT(Refused({"show", "matmul", "--args", "64,64,64", "--sketches", "--target", "vax"}),
              HasSubstr("unknown target 'vax', expected llvm, cuda or null"));
}

TEST_F(CliTest, VersionAndDoctor) {
  const std::string version = KilnPrints({"--version"});
  EXPECT_THAT(
      version,
      MatchesRegex("kiln [0-9]+.*, LLVM [0-9.]+, NVRTC .+, XGBoost [0-9.]+, SQLite [0-9.]+\n"));
  EXPECT_EQ(KilnPrints({"version"}), version);
  const Json parts = Json::parse(KilnPrints({"version", "--json"}));
  EXPECT_THAT(version, HasSubstr("SQLite " + parts["SQLite"].get<std::string>()));
  const RunResult doctor = RunKiln({"doctor", "--db", folder_.Join("none.db")});
  for (const char* what : {"CPU", "LLVM", "CUDA", "limits", "disk", "database"}) {
    EXPECT_THAT(doctor.output, HasSubstr(what));
  }
  // Missing limits of programs are told, and are no failure.
  const RunResult told = RunKiln({"doctor", "--db", folder_.Join("none.db"), "--json"});
  bool is_well = true;
  std::istringstream rows(told.output);
  for (std::string row; std::getline(rows, row);) {
    const Json finding = Json::parse(row);
    const bool ok = finding["ok"].get<bool>(), gap = finding["gap"].get<bool>();
    EXPECT_EQ(gap, finding["what"].get<std::string>() == "contain" && !ok) << row;
    is_well &= ok || gap;
  }
  EXPECT_EQ(told.exit.ok(), is_well) << told.output << told.error;
  const std::string text = File("text.db", "no database at all, really none\n");
  EXPECT_THAT(RunKiln({"doctor", "--db", text}).output, HasSubstr("BAD  database"));
}

// The names and keys hold commands to the terminal.
TEST_F(CliTest, ForeignTextCannotControlTheTerminal) {
  const std::string db = folder_.Join("kiln.db");
  const std::string evil = "\x1b[2J\x1b]0;evil\x07\r\x7f\xc2\x9b";
  const std::string log =
      File("log", R"({"i": [["[\"\u001b[31mkey\u0007\", [8]]", "llvm \u001b[2J"], )"
                  R"([[], []]], "r": [[0.001], 0, 1, 1], "v": "v0.6"})"
                  "\n");
  KilnPrints({"records", "import", log, "--db", db});
  const std::string tuned = KilnPrints({"tune", "matmul", "--args", "8,8,8", "--target", "null",
                                        "--trials", "2", "--name", "job" + evil, "--db", db});
  const std::string jobs = KilnPrints({"jobs", "--db", db});
  EXPECT_THAT(jobs, HasSubstr("job [2J ]0;evil"));
  std::string id;
  for (std::istringstream lines(jobs); std::getline(lines, id);) {
    if (id.find("evil") != std::string::npos) break;
  }
  id = id.substr(0, id.find(' '));
  const std::vector<Words> commands = {{"jobs", id},
                                       {"jobs", "import"},
                                       {"best", id},
                                       {"best", "import"},
                                       {"show", id},
                                       {"show", "1"},
                                       {"records", "list"},
                                       {"records", "stats"},
                                       {"choice", "list"},
                                       {"records", "export"},
                                       {"records", "distill"},
                                       {"trial", id + "/0"},
                                       {"jobs", "none" + evil},
                                       {"tune", "matmul" + evil},
                                       {"jobs", "--" + evil}};
  for (Words words : commands) {
    words.insert(words.end(), {"--db", db});
    const RunResult result = RunKiln(words);
    for (const std::string& text : {tuned, jobs, result.output, result.error}) {
      const bool clean = std::ranges::none_of(
          text, [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == 127; });
      EXPECT_TRUE(clean) << words[0] << " " << words[1] << ": " << testing::PrintToString(text);
      EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << words[0];
    }
  }
}

TEST_F(CliTest, ALogWithoutAnEndIsRefused) {
  EXPECT_THAT(Refused({"records", "distill", "/dev/zero"}), HasSubstr("/dev/zero, line 1: no end"));
  EXPECT_THAT(Refused({"records", "measure", "/dev/zero"}), HasSubstr("/dev/zero, line 1: no end"));
}

}  // namespace
}  // namespace kiln::client
