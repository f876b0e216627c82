// kiln keys, by the real binary.
#include <sys/stat.h>

#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/keys/key_folder.h"
#include "base/keys/verify.h"
#include "base/process/subprocess.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

class KeysTest : public KilnTest {
 protected:
  Words WithAuthority(Words words) const {
    words.insert(words.begin(), "keys");
    words.insert(words.end(), {"--authority", keys_});
    return words;
  }
  std::string Keys(Words words) const { return KilnPrints(WithAuthority(std::move(words))); }
  std::string RefusedKeys(Words words) const { return Refused(WithAuthority(std::move(words))); }

  // Checks the folder of a name as a daemon would.
  StatusOr<Identity> Check(const std::string& name) const {
    KILN_ASSIGN_OR_RETURN(const KeyFolder folder, ReadKeyFolder(keys_ + "/" + name));
    return Verify(folder.certificate, folder.authority, folder.revoked, Clock::Real().Now());
  }

  const std::string keys_ = folder_.Join("farm-keys");
};

// keys_farm_test.cc types them.
TEST_F(KeysTest, InitPrintsTheWayToAFarmOfTwoBoxes) {
  const std::string said = Keys({"init"});
  EXPECT_THAT(said, AllOf(HasSubstr("The authority 'Kiln farm "), HasSubstr("in a safe place")));
  std::istringstream lines(said);
  int commands = 0;
  for (std::string line; std::getline(lines, line);) commands += line.starts_with("  ") ? 1 : 0;
  EXPECT_EQ(commands, 5) << "init itself is one of six";
  EXPECT_THAT(said, AllOf(HasSubstr("farm up --tls --authority " + keys_ + " --listen 0.0.0.0"),
                          HasSubstr("keys issue box2 --role work --authority " + keys_),
                          HasSubstr("scp -rp " + keys_ + "/box2 box2:"),
                          HasSubstr("runner --keys box2 --listen 0.0.0.0:0 --tracker "),
                          HasSubstr("tune matmul --args 512,512,512 --scheduler "),
                          HasSubstr(" --keys " + keys_ + "/")));
  EXPECT_THAT(RefusedKeys({"init"}), HasSubstr("has an authority already"));
}

TEST_F(KeysTest, TheHelpListsTheCommands) {
  EXPECT_THAT(KilnPrints({"--help"}), HasSubstr("  keys "));
  const std::string help = KilnPrints({"keys", "--help"});
  for (const char* command : {"init", "issue", "list", "renew", "revoke"}) {
    EXPECT_THAT(help, HasSubstr(std::string("  ") + command + " ")) << command;
  }
}

TEST_F(KeysTest, FromIssueToRevocation) {
  Keys({"init"});
  EXPECT_THAT(Keys({"list"}), HasSubstr("no certificates in"));
  EXPECT_THAT(Keys({"issue", "alice", "--role", "submit", "--days", "12"}),
              AllOf(HasSubstr("alice has the role submit until 20"), HasSubstr(keys_ + "/alice")));
  EXPECT_THAT(RefusedKeys({"issue", "alice", "--role", "admin"}),
              AllOf(HasSubstr("alice has a certificate with the role submit until"),
                    HasSubstr("`kiln keys renew alice`"), HasSubstr("--replace")));
  Keys({"issue", "alice", "--role", "operate", "--days", "12", "--replace"});
  EXPECT_EQ(Check("alice")->role, Role::kOperate);
  Keys({"renew", "alice"});
  EXPECT_EQ(Check("alice")->role, Role::kOperate);
  const std::string list = Keys({"list"});
  EXPECT_THAT(list, AllOf(HasSubstr("revoked 20"), HasSubstr("ends in 1"), HasSubstr("valid")));
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;

  EXPECT_THAT(Keys({"revoke", "alice"}),
              AllOf(HasSubstr("revoked the certificate "), HasSubstr("of alice, role operate"),
                    HasSubstr("revoked.pem")));
  EXPECT_THAT(Check("alice"), StatusIs(StatusCode::kUnauthenticated, HasSubstr("was revoked")));
  EXPECT_THAT(Keys({"revoke", "alice"}), HasSubstr("of alice, role operate, already on 20"));
  const std::vector<Json> rows = JsonLines(Keys({"list", "--json"}));
  ASSERT_EQ(rows.size(), 3u);
  for (const Json& row : rows) {
    EXPECT_EQ(row["name"], "alice");
    EXPECT_FALSE(row["revoked_s"].is_null());
    EXPECT_EQ(row["serial"].get<std::string>().size(), 20u);
    EXPECT_LT(row["begins_s"], row["ends_s"]);
  }
  // The other farm's authority does not know the serial number.
  EXPECT_THAT(RefusedKeys({"revoke", "0123456789abcdef0123"}),
              AllOf(HasSubstr("nothing to revoke"), HasSubstr("`kiln keys list`")));
  EXPECT_THAT(RefusedKeys({"renew", "alice"}), HasSubstr("`kiln keys issue alice --role"));
}

TEST_F(KeysTest, WrongWordsDoNothing) {
  EXPECT_THAT(RefusedKeys({"issue", "alice", "--role", "submit"}),
              AllOf(HasSubstr("there is no authority in"), HasSubstr("`kiln keys init")));
  Keys({"init"});
  EXPECT_THAT(RefusedKeys({"issue", "alice", "--role", "worker"}),
              AllOf(HasSubstr("there is no role 'worker', did you mean work?"),
                    HasSubstr("read, submit, work, operate or admin")));
  EXPECT_THAT(RefusedKeys({"issue", "alice"}), HasSubstr("--role"));
  for (const char* name : {"../alice", "a/b", "a b", "authority", "\xff\n"}) {
    EXPECT_THAT(RefusedKeys({"issue", name, "--role", "read"}), HasSubstr("expected")) << name;
  }
  for (const char* days : {"0", "-1", "100000", "99999999999999999999", "many"}) {
    EXPECT_THAT(RefusedKeys({"issue", "alice", "--role", "read", "--days", days}),
                HasSubstr("days"))
        << days;
  }
  // If one of several names is wrong, none is issued.
  EXPECT_THAT(RefusedKeys({"issue", "alice", "b/c", "--role", "read"}), HasSubstr("'b/c'"));
  EXPECT_EQ(Keys({"list", "--json"}), "");
  EXPECT_FALSE(FileExists(folder_.Join("alice")));
}

TEST_F(KeysTest, AKeyThatOthersCanReadIsRefused) {
  Keys({"init"});
  chmod((keys_ + "/authority/key.pem").c_str(), 0644);
  EXPECT_THAT(RefusedKeys({"issue", "alice", "--role", "read"}),
              AllOf(HasSubstr("has mode 0644"), HasSubstr("`chmod 600 ")));
}

// Processes that issue at once lose no entry of each other.
TEST_F(KeysTest, ProcessesAtOnce) {
  Keys({"init"});
  std::vector<Subprocess> started;
  for (int i = 0; i < 4; ++i) {
    SubprocessOptions options =
        KilnOptions(WithAuthority({"issue", fmt::format("box{}", i), "--role", "work"}));
    options.output = options.error = SubprocessOptions::Stream::kNull;
    ASSERT_OK_AND_ASSIGN(Subprocess process, Subprocess::Spawn(options));
    started.push_back(std::move(process));
  }
  for (Subprocess& process : started) EXPECT_TRUE(process.Wait()->ok());
  EXPECT_EQ(JsonLines(Keys({"list", "--json"})).size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_OK(Check(fmt::format("box{}", i)));
}

}  // namespace
}  // namespace kiln::client
