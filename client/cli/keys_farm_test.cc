// A farm with keys by the real binary, on the null target: the commands that `kiln keys init`
// prints, what each key may do, and what `kiln doctor` says of keys that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/process/subprocess.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1500; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(20));
  }
  return condition();
}

// Returns the words of the printed command that has `part` in it, without the program.
Words PrintedCommand(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ") || line.find(part) == std::string::npos) continue;
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    // "box2$" names the machine.
    if (words.front() == "box2$") words.erase(words.begin());
    words.erase(words.begin());
    return words;
  }
  ADD_FAILURE() << "no command has '" << part << "' in it:\n" << text;
  return {"--version"};
}

// Returns the value behind `name` in a text of words.
std::string ValueOf(const std::string& text, const std::string& name) {
  const size_t at = text.find(name);
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size();
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

class KeysFarmTest : public KilnTest {
 protected:
  ~KeysFarmTest() override { RunKiln({"farm", "down", "--folder", farm_}); }

  // Starts the farm by the command that `init` has printed.
  void InitAndStart() {
    init_ = KilnPrints({"keys", "init", "--authority", keys_});
    Start(PrintedCommand(init_, " farm up "));
  }
  void Start(Words up) {
    // Other farms of this machine, and its devices, are none of the test's business.
    up.insert(up.end(), {"--folder", farm_, "--device", "null", "--workers", "1"});
    up_ = KilnPrints(up);
    scheduler_ = ValueOf(up_, "KILN_SCHEDULER=");
    tracker_ = ValueOf(up_, "KILN_TRACKER=");
    own_keys_ = ValueOf(up_, "KILN_KEYS=");
    ASSERT_NE(scheduler_, "") << up_;
    ASSERT_TRUE(FileExists(own_keys_)) << up_;
  }

  void Issue(const std::string& name, const std::string& role) const {
    KilnPrints({"keys", "issue", name, "--role", role, "--authority", keys_});
  }
  // Returns the words that make a command use the farm with the keys of the name.
  Words As(const std::string& name, Words words) const { return With(keys_ + "/" + name, words); }
  Words With(const std::string& folder, Words words) const {
    words.insert(words.end(), {"--scheduler", scheduler_, "--keys", folder});
    return words;
  }
  static Words Tune() {
    return {"tune", "matmul",   "--args", "16,16,16", "--target",
            "null", "--trials", "3",      "--policy", "sketch.random"};
  }
  Json Status() const {
    return Json::parse(RunKiln({"farm", "status", "--folder", farm_, "--json"}).output, nullptr,
                       false);
  }
  // Expects `kiln doctor` to find something wrong with the keys of the folder.
  void ExpectFound(const std::string& folder, const testing::Matcher<std::string>& expected) const {
    const RunResult result = RunKiln(With(folder, {"doctor", "--json"}));
    EXPECT_EQ(result.exit.code, 1) << result.output;
    std::string bad;
    for (const Json& finding : JsonLines(result.output)) {
      const bool is_of_keys = finding["what"] == "keys" || finding["what"] == "scheduler";
      if (is_of_keys && finding["ok"] == false) bad += finding["detail"].get<std::string>() + "\n";
    }
    EXPECT_THAT(bad, expected) << result.output;
  }

  const std::string keys_ = folder_.Join("farm-keys");
  const std::string farm_ = folder_.Join("farm");
  std::string init_, up_, scheduler_, tracker_, own_keys_;
};

TEST_F(KeysFarmTest, TheCommandsThatInitPrintsMakeAFarmOfTwoBoxes) {
  ASSERT_NO_FATAL_FAILURE(InitAndStart());
  EXPECT_EQ(Status()["answers"], true);
  EXPECT_THAT(up_, HasSubstr("keys issue box2 --role work --authority " + keys_));
  KilnPrints(PrintedCommand(init_, " keys issue "));
  // The folder goes to the other box.
  const Words copy = PrintedCommand(init_, "scp ");
  EXPECT_EQ(copy, (Words{"-rp", keys_ + "/box2", "box2:"}));
  Words runner = PrintedCommand(init_, " runner ");
  ASSERT_EQ(runner, (Words{"runner", "--keys", "box2", "--listen", "0.0.0.0:0", "--tracker",
                           ValueOf(init_, "--tracker ")}));
  // The test has one box, which may have no name that resolves.
  runner = {"runner",   "--keys", keys_ + "/box2", "--listen", "127.0.0.1:0",
            "--device", "null",   "--tracker",     tracker_};
  SubprocessOptions options = KilnOptions(runner);
  options.output = options.error = SubprocessOptions::Stream::kNull;
  ASSERT_OK_AND_ASSIGN(Subprocess box2, Subprocess::Spawn(options));
  EXPECT_TRUE(Eventually([&] { return Status()["runners"] == 2; })) << Status();
  // The key of the user's own that `up` has made is the one that `init` has named.
  EXPECT_EQ(ValueOf(init_, "--keys " + keys_), own_keys_.substr(keys_.size()));
  EXPECT_THAT(KilnPrints(With(own_keys_, Tune())), HasSubstr("trials 3/3"));
  ASSERT_OK(box2.Stop(absl::Seconds(30)));
}

TEST_F(KeysFarmTest, EachKeyMayDoWhatItsRoleMay) {
  ASSERT_NO_FATAL_FAILURE(InitAndStart());
  Issue("alice", "submit");
  Issue("rita", "read");
  EXPECT_THAT(KilnPrints(As("alice", Tune())), HasSubstr("trials 3/3"));
  KilnPrints(As("rita", {"jobs"}));
  const RunResult refused = RunKiln(As("rita", Tune()));
  EXPECT_EQ(refused.exit.code, 1);
  EXPECT_THAT(refused.error,
              AllOf(HasSubstr("rita has the role read, and Scheduler.Submit asks for the role "
                              "submit"),
                    HasSubstr("`kiln keys issue rita --role submit --replace`")));
  EXPECT_THAT(RunKiln(As("alice", {"audit"})).error, HasSubstr("asks for the role operate"));
  // The user who started the farm sees the refusals. They are few, however many calls are refused.
  for (int i = 0; i < 15; ++i) RunKiln(As("rita", {"cancel", "none"}));
  int of_rita = 0;
  for (const Json& entry : JsonLines(KilnPrints(With(own_keys_, {"audit", "--json"})))) {
    if (entry["user"] != "rita") continue;
    EXPECT_THAT(entry["refused"].get<std::string>(), HasSubstr("rita has the role read"));
    ++of_rita;
  }
  EXPECT_EQ(of_rita, 10);

  KilnPrints({"keys", "revoke", "alice", "--authority", keys_});
  EXPECT_TRUE(Eventually([&] {
    return RunKiln(As("alice", {"jobs"})).error.find("was revoked on") != std::string::npos;
  }));
  EXPECT_EQ(RunKiln(As("alice", Tune())).exit.code, 1);
  EXPECT_EQ(RunKiln({"jobs", "--scheduler", scheduler_}).exit.code, 1);

  // The farm goes on with its keys after an end.
  EXPECT_THAT(KilnPrints({"farm", "down", "--folder", farm_}), HasSubstr("has ended: tracker ("));
  EXPECT_THAT(KilnPrints({"farm", "up", "--tls", "--authority", keys_, "--folder", farm_,
                          "--device", "null", "--workers", "1"}),
              AllOf(HasSubstr("is up"), HasSubstr("Only this machine reaches it")));
  EXPECT_EQ(Status()["jobs"], 1);
}

TEST_F(KeysFarmTest, DoctorNamesEachFault) {
  {
    // The authority is older than a certificate that has ended.
    FakeClock clock(absl::Now() - absl::Hours(24 * 20));
    ASSERT_OK_AND_ASSIGN(AuthorityFolder folder, AuthorityFolder::Init(keys_, {.clock = &clock}));
    ASSERT_OK(folder.Issue({"late", Role::kSubmit}, 10, false));
    clock.Advance(absl::Hours(24 * 21));
    ASSERT_OK(folder.Issue({"early", Role::kSubmit}, 10, false));
  }
  ASSERT_NO_FATAL_FAILURE(Start({"farm", "up", "--tls", "--authority", keys_}));
  Issue("alice", "submit");
  Issue("box3", "work");
  KilnPrints(As("alice", {"jobs"}));
  ExpectFound(keys_ + "/late",
              AllOf(HasSubstr("the certificate of late ended on"), HasSubstr("renew late")));
  ExpectFound(keys_ + "/early", AllOf(HasSubstr("the certificate of early begins on"),
                                      HasSubstr("timedatectl set-ntp true")));
  ExpectFound(keys_ + "/box3", HasSubstr("expected those of a person"));
  ExpectFound(folder_.Join("none"), HasSubstr("kiln keys issue NAME --role ROLE"));

  const std::string other = folder_.Join("other-keys");
  KilnPrints({"keys", "init", "--authority", other});
  KilnPrints({"keys", "issue", "eve", "--role", "admin", "--authority", other});
  ExpectFound(other + "/eve", HasSubstr("was issued by 'Kiln farm "));

  // A folder that was copied in part, and one whose files are of two farms.
  const std::string part = folder_.Join("part"), mixed = folder_.Join("mixed");
  std::filesystem::copy(keys_ + "/alice", part);
  std::filesystem::remove(part + "/authority.pem");
  ExpectFound(part, AllOf(HasSubstr("authority.pem"), HasSubstr("expected a folder of keys")));
  std::filesystem::copy(keys_ + "/alice", mixed);
  std::filesystem::copy(other + "/eve/authority.pem", mixed + "/authority.pem",
                        std::filesystem::copy_options::overwrite_existing);
  ExpectFound(mixed, AllOf(HasSubstr("mixed/revoked.pem is not signed by"),
                           HasSubstr("copy the file anew")));

  ASSERT_EQ(chmod((keys_ + "/alice/identity.pem").c_str(), 0644), 0);
  ExpectFound(keys_ + "/alice", AllOf(HasSubstr("has mode 0644"), HasSubstr("`chmod 600 ")));
  ASSERT_EQ(chmod((keys_ + "/alice/identity.pem").c_str(), 0600), 0);
  KilnPrints({"keys", "revoke", "alice", "--authority", keys_});
  ExpectFound(keys_ + "/alice", HasSubstr("was revoked on"));
}

}  // namespace
}  // namespace kiln::client
