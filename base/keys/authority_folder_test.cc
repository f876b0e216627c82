#include "base/keys/authority_folder.h"

#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <set>
#include <thread>

#include "base/file/file.h"
#include "base/hash/unique_id.h"
#include "base/keys/key_folder.h"
#include "base/keys/keys_testing.h"
#include "base/keys/verify.h"
#include "base/numbers/rng.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class AuthorityFolderTest : public testing::Test {
 protected:
  AuthorityFolder::Sources TestSources() {
    return {&clock_, [this](int digits) { return UniqueId(rng_, digits); }};
  }
  AuthorityFolder Init() { return *AuthorityFolder::Init(path_, TestSources()); }
  Status OpenStatus() { return AuthorityFolder::Open(path_, TestSources()).status(); }
  // Checks the member's folder as a process of the farm would.
  StatusOr<Identity> CheckFolder(const AuthorityFolder& folder, const std::string& name) {
    KILN_ASSIGN_OR_RETURN(const KeyFolder keys, ReadKeyFolder(folder.FolderOf(name)));
    return Verify(keys.certificate, keys.authority, keys.revoked, clock_.Now());
  }
  std::string OwnFile(const std::string& name) const {
    return JoinPath(path_, "authority/" + name);
  }

  const TempDir temporary_ = *TempDir::Make("authority-folder-test");
  const std::string path_ = temporary_.Join("farm-keys");
  FakeClock clock_;
  Rng rng_{1};
};

std::vector<std::string> NamesOf(const std::vector<Issued>& all) {
  std::vector<std::string> names;
  for (const Issued& issued : all) names.push_back(issued.identity.name);
  return names;
}

int ModeOf(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 ? static_cast<int>(info.st_mode & 07777) : -1;
}

TEST_F(AuthorityFolderTest, FilesAndFoldersAreTheirOwners) {
  const mode_t before = umask(0);
  AuthorityFolder folder = Init();
  ASSERT_OK(folder.Issue({"box1", Role::kWork}, 10, false));
  umask(before);
  for (const std::string& path : {path_, OwnFile(""), OwnFile("issued"), folder.FolderOf("box1")}) {
    EXPECT_EQ(ModeOf(path), 0700) << path;
  }
  EXPECT_EQ(ModeOf(OwnFile("key.pem")), 0600);
  EXPECT_EQ(ModeOf(folder.FolderOf("box1/identity.pem")), 0600);
  EXPECT_OK(OpenStatus());
  chmod(OwnFile("key.pem").c_str(), 0640);
  EXPECT_THAT(OpenStatus(), StatusIs(StatusCode::kFailedPrecondition,
                                     AllOf(HasSubstr("the file of the authority's private key"),
                                           HasSubstr("`chmod 600 "))));
  chmod(OwnFile("key.pem").c_str(), 0600);
  chmod(path_.c_str(), 0750);
  EXPECT_THAT(OpenStatus(), StatusIs(StatusCode::kFailedPrecondition,
                                     AllOf(HasSubstr("has mode 0750"), HasSubstr("`chmod 700 "))));
}

TEST_F(AuthorityFolderTest, OneAuthorityAFolder) {
  EXPECT_THAT(OpenStatus(),
              StatusIs(StatusCode::kNotFound, AllOf(HasSubstr("there is no authority in"),
                                                    HasSubstr("`kiln keys init --authority "))));
  const AuthorityFolder folder = Init();
  EXPECT_THAT(AuthorityFolder::Init(path_, TestSources()),
              StatusIs(StatusCode::kAlreadyExists,
                       AllOf(HasSubstr("has an authority already"), HasSubstr("kiln keys issue"))));
  ASSERT_OK_AND_ASSIGN(const AuthorityFolder opened, AuthorityFolder::Open(path_, TestSources()));
  EXPECT_TRUE(opened.authority().certificate().Equals(folder.authority().certificate()));
}

TEST_F(AuthorityFolderTest, OfManyInitsOneMakesTheAuthority) {
  std::atomic<int> made = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto folder = AuthorityFolder::Init(path_, {});
      made += folder.ok();
      refused += folder.status().code() == StatusCode::kAlreadyExists;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(refused, 3);
  EXPECT_OK(OpenStatus());
}

TEST_F(AuthorityFolderTest, MembersComeInWithTheirFolders) {
  AuthorityFolder folder = Init();
  for (const Role role : kRoles) {
    const std::string name = fmt::format("box-{}", RoleName(role));
    ASSERT_OK_AND_ASSIGN(const Issued issued, folder.Issue({name, role}, 30, false));
    EXPECT_EQ(*CheckFolder(folder, name), issued.identity);
    EXPECT_EQ(issued.identity.role, role);
    EXPECT_EQ(issued.begins, clock_.Now());
    EXPECT_EQ(issued.identity.expires, clock_.Now() + absl::Hours(24 * 30));
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Issued> all, folder.List());
  EXPECT_THAT(NamesOf(all),
              ElementsAre("box-admin", "box-operate", "box-read", "box-submit", "box-work"));
}

TEST_F(AuthorityFolderTest, NamesThatAreNone) {
  AuthorityFolder folder = Init();
  for (const char* name :
       {"", "..", "../../etc/x", "/etc/x", "a/b", "authority", "a b", "0123456789abcdef0123"}) {
    EXPECT_THAT(folder.Issue({name, Role::kRead}, 10, false),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected")))
        << name;
  }
  for (const char* name : {"../authority", "", "a b"}) {
    EXPECT_THAT(folder.Revoke(name), StatusIs(StatusCode::kInvalidArgument, testing::_));
    EXPECT_THAT(folder.Renew(name, 10), StatusIs(StatusCode::kInvalidArgument, testing::_));
  }
  for (const int days : {0, 100'000}) {
    EXPECT_THAT(folder.Issue({"alice", Role::kRead}, days, false),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected 1 to 3650")));
  }
  EXPECT_THAT(*folder.List(), SizeIs(0)) << "nothing is done";
}

TEST_F(AuthorityFolderTest, ANameHasOneRole) {
  AuthorityFolder folder = Init();
  ASSERT_OK_AND_ASSIGN(const Issued first, folder.Issue({"alice", Role::kRead}, 10, false));
  EXPECT_THAT(folder.Issue({"alice", Role::kAdmin}, 10, false),
              StatusIs(StatusCode::kAlreadyExists,
                       AllOf(HasSubstr("alice has a certificate with the role read until"),
                             HasSubstr("`kiln keys renew alice`"), HasSubstr("--replace"))));
  EXPECT_EQ(CheckFolder(folder, "alice")->role, Role::kRead);
  ASSERT_OK(folder.Issue({"alice", Role::kSubmit}, 10, true));
  EXPECT_EQ(CheckFolder(folder, "alice")->role, Role::kSubmit);
  ASSERT_OK_AND_ASSIGN(const KeyFolder keys, ReadKeyFolder(folder.FolderOf("alice")));
  EXPECT_EQ(keys.revoked.RevokedAt(first.identity.serial), clock_.Now());
  // An expired one is in nobody's way.
  clock_.Advance(absl::Hours(24 * 11));
  EXPECT_OK(folder.Issue({"alice", Role::kOperate}, 10, false));
}

TEST_F(AuthorityFolderTest, RenewalsKeepNameAndRole) {
  AuthorityFolder folder = Init();
  EXPECT_THAT(folder.Renew("box1", 10),
              StatusIs(StatusCode::kNotFound, AllOf(HasSubstr("box1 has no certificate to renew"),
                                                    HasSubstr("`kiln keys issue box1 --role"))));
  ASSERT_OK_AND_ASSIGN(const Issued first, folder.Issue({"box1", Role::kWork}, 10, false));
  clock_.Advance(absl::Hours(24 * 9));
  ASSERT_OK_AND_ASSIGN(const Issued second, folder.Renew("box1", 20));
  EXPECT_EQ(second.identity.role, Role::kWork);
  EXPECT_NE(second.identity.serial, first.identity.serial);
  EXPECT_EQ(*CheckFolder(folder, "box1"), second.identity);
  // The older one holds until its end.
  ASSERT_OK_AND_ASSIGN(std::vector<Issued> all, folder.List());
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_TRUE(all[0].IsCurrent(clock_.Now()));
  clock_.Advance(absl::Hours(24 * 90));
  EXPECT_FALSE(all[1].IsCurrent(clock_.Now()));
  // An expired one is renewed as well.
  EXPECT_OK(folder.Renew("box1", 10));
  ASSERT_OK(folder.Revoke("box1"));
  EXPECT_THAT(folder.Renew("box1", 10), StatusIs(StatusCode::kNotFound, testing::_));
}

TEST_F(AuthorityFolderTest, RevocationsReachEveryFolder) {
  AuthorityFolder folder = Init();
  ASSERT_OK(folder.Issue({"alice", Role::kSubmit}, 10, false));
  ASSERT_OK(folder.Issue({"bob", Role::kSubmit}, 10, false));
  ASSERT_OK_AND_ASSIGN(const Issued second, folder.Renew("alice", 20));
  ASSERT_OK(folder.Issue({"box1", Role::kWork}, 10, false));
  // The folder was moved to its machine.
  ASSERT_OK(RemoveTree(folder.FolderOf("bob")));
  ASSERT_OK_AND_ASSIGN(Revoked ended, folder.Revoke("alice"));
  EXPECT_THAT(ended.certificates, SizeIs(2)) << "both certificates of the name";
  EXPECT_FALSE(ended.earlier);
  EXPECT_FALSE(FileExists(folder.FolderOf("bob")));
  EXPECT_THAT(CheckFolder(folder, "alice"),
              StatusIs(StatusCode::kUnauthenticated, HasSubstr("was revoked on")));
  EXPECT_OK(CheckFolder(folder, "box1"));
  ASSERT_OK_AND_ASSIGN(const KeyFolder keys, ReadKeyFolder(folder.FolderOf("box1")));
  EXPECT_THAT(keys.revoked.entries(), SizeIs(2));
  EXPECT_EQ(keys.revoked.number(), 1);
  EXPECT_TRUE(keys.revoked.RevokedAt(second.identity.serial).has_value());
  EXPECT_THAT(folder.Revoke("carol"),
              StatusIs(StatusCode::kNotFound,
                       AllOf(HasSubstr("nothing to revoke"), HasSubstr("`kiln keys list`"))));
  // A single certificate goes by its number.
  ASSERT_OK_AND_ASSIGN(const Issued again, folder.Issue({"alice", Role::kRead}, 10, false));
  ASSERT_OK_AND_ASSIGN(ended, folder.Revoke(again.identity.serial));
  ASSERT_THAT(ended.certificates, SizeIs(1));
  EXPECT_EQ(ended.certificates[0].identity, again.identity);
  ASSERT_OK_AND_ASSIGN(const std::vector<Issued> all, folder.List());
  for (const Issued& issued : all) {
    EXPECT_EQ(issued.revoked.has_value(), issued.identity.name == "alice");
  }
}

// The folder of box1 is in a state in which nothing can be written into it.
TEST_F(AuthorityFolderTest, AFolderThatCannotBeWrittenHoldsUpNoOther) {
  AuthorityFolder folder = Init();
  for (const char* name : {"box1", "box2"}) {
    ASSERT_OK(folder.Issue({name, Role::kWork}, 10, false));
  }
  ASSERT_OK(folder.Issue({"alice", Role::kSubmit}, 10, false));
  const std::string box1 = folder.FolderOf("box1"), away = temporary_.Join("away");
  ASSERT_EQ(std::rename(box1.c_str(), away.c_str()), 0);
  ASSERT_OK(WriteFile(box1, "in the way"));
  const auto number_of = [&](const std::string& name) {
    return ReadRevocations(folder.FolderOf(name), folder.authority().certificate())->number();
  };
  const auto fails = AllOf(HasSubstr("the folder of box1 still has an older list"), HasSubstr(box1),
                           HasSubstr("give the same command again"));
  const auto revoke = [&] { return std::string(Message(folder.Revoke("alice").status())); };
  EXPECT_THAT(revoke(), fails);
  EXPECT_EQ(number_of("box2"), 1);
  EXPECT_THAT(revoke(), fails) << "it says so until it has worked";
  EXPECT_THAT(std::string(Message(folder.Issue({"alice", Role::kRead}, 10, true).status())), fails);
  ASSERT_OK(RemoveFile(box1));
  ASSERT_EQ(std::rename(away.c_str(), box1.c_str()), 0);
  EXPECT_EQ(number_of("box1"), 0);
  ASSERT_OK_AND_ASSIGN(const Revoked again, folder.Revoke("alice"));
  EXPECT_TRUE(again.earlier);
  ASSERT_THAT(again.certificates, SizeIs(1));
  EXPECT_EQ(again.certificates[0].revoked, clock_.Now());
  EXPECT_EQ(number_of("box1"), 1);
}

// An old copy of the authority was put back. What the newer list revoked stays revoked, and the
// next list goes to members who have the newer one.
TEST_F(AuthorityFolderTest, AnOlderAuthorityGoesOnFromTheNewestList) {
  AuthorityFolder folder = Init();
  ASSERT_OK(folder.Issue({"box1", Role::kWork}, 10, false));
  ASSERT_OK_AND_ASSIGN(const Issued alice, folder.Issue({"alice", Role::kRead}, 10, false));
  ASSERT_OK_AND_ASSIGN(const Issued bob, folder.Issue({"bob", Role::kRead}, 10, false));
  ASSERT_OK_AND_ASSIGN(const std::string copy, ReadFile(OwnFile("revoked.pem")));
  ASSERT_OK(folder.Revoke("alice"));
  ASSERT_OK(WriteFile(OwnFile("revoked.pem"), copy));
  ASSERT_OK(folder.Revoke("bob"));
  ASSERT_OK_AND_ASSIGN(const KeyFolder keys, ReadKeyFolder(folder.FolderOf("box1")));
  EXPECT_EQ(keys.revoked.number(), 2);
  EXPECT_TRUE(keys.revoked.RevokedAt(alice.identity.serial).has_value());
  EXPECT_TRUE(keys.revoked.RevokedAt(bob.identity.serial).has_value());
}

// Each process has its own object; they meet in the files alone.
TEST_F(AuthorityFolderTest, ProcessesAtOnceLoseNothing) {
  Init();
  constexpr int kProcesses = 3, kNames = 3;
  std::atomic<int> taken = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kProcesses; ++i) {
    threads.emplace_back([&, i] {
      auto folder = AuthorityFolder::Open(path_, {});
      ASSERT_OK(folder.status());
      for (int j = 0; j < kNames; ++j) {
        ASSERT_OK(folder->Issue({fmt::format("box-{}-{}", i, j), Role::kWork}, 10, false));
        ASSERT_OK(folder->Revoke(fmt::format("box-{}-{}", i, j)));
      }
      const auto shared = folder->Issue({"shared", Role::kSubmit}, 10, false);
      taken += shared.ok();
      refused += shared.status().code() == StatusCode::kAlreadyExists;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(refused, kProcesses - 1);
  ASSERT_OK_AND_ASSIGN(const AuthorityFolder folder, AuthorityFolder::Open(path_, {}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Issued> all, folder.List());
  std::set<std::string> names;
  int revoked = 0;
  for (const Issued& issued : all) {
    names.insert(issued.identity.name);
    revoked += issued.revoked.has_value();
  }
  EXPECT_THAT(names, SizeIs(kProcesses * kNames + 1));
  EXPECT_THAT(all, SizeIs(kProcesses * kNames + 1));
  EXPECT_EQ(revoked, kProcesses * kNames);
  ASSERT_OK_AND_ASSIGN(const KeyFolder keys, ReadKeyFolder(folder.FolderOf("shared")));
  EXPECT_EQ(keys.revoked.number(), kProcesses * kNames);
}

TEST_F(AuthorityFolderTest, RandomNumbersThatRepeat) {
  ASSERT_OK_AND_ASSIGN(
      AuthorityFolder folder,
      AuthorityFolder::Init(path_, {&clock_, [](int digits) { return std::string(digits, '7'); }}));
  ASSERT_OK(folder.Issue({"alice", Role::kRead}, 10, false));
  EXPECT_THAT(folder.Issue({"bob", Role::kRead}, 10, false),
              StatusIs(StatusCode::kInternal, HasSubstr("random numbers of this machine repeat")));
  EXPECT_THAT(NamesOf(*folder.List()), ElementsAre("alice"));
}

TEST_F(AuthorityFolderTest, DamagedFilesAreNamed) {
  AuthorityFolder folder = Init();
  ASSERT_OK_AND_ASSIGN(const Issued issued, folder.Issue({"alice", Role::kRead}, 10, false));
  const std::string listed = "issued/" + issued.identity.serial + ".pem";
  for (const std::string& name : {std::string("key.pem"), std::string("certificate.pem"),
                                  std::string("revoked.pem"), listed}) {
    const std::string path = OwnFile(name);
    ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile(path));
    ASSERT_OK(WriteFile(path, text.substr(0, text.size() / 2)));
    auto opened = AuthorityFolder::Open(path_, TestSources());
    const Status status = opened.ok() ? opened->List().status() : opened.status();
    EXPECT_THAT(status, StatusIs(StatusCode::kDataLoss, HasSubstr(name)));
    if (opened.ok()) {
      EXPECT_THAT(opened->Issue({"bob", Role::kRead}, 10, false),
                  StatusIs(StatusCode::kDataLoss, HasSubstr(name)));
    }
    ASSERT_OK(WriteFile(path, text));
  }
  // The key of another farm.
  ASSERT_OK(WriteFile(OwnFile("key.pem"), TestAuthority("bb").key().ToPem()));
  EXPECT_THAT(OpenStatus(), StatusIs(StatusCode::kFailedPrecondition,
                                     HasSubstr("the private key is not that of the authority")));
}

// A process that was ended while it wrote leaves files that are not read.
TEST_F(AuthorityFolderTest, WhatADeadProcessLeaves) {
  AuthorityFolder folder = Init();
  ASSERT_OK_AND_ASSIGN(const Issued issued, folder.Issue({"alice", Role::kRead}, 10, false));
  ASSERT_OK(WriteFile(OwnFile("issued/" + issued.identity.serial + ".pem.1234.tmp"), "half"));
  // It had written the list, and not yet the member's folder.
  ASSERT_OK(RemoveTree(folder.FolderOf("alice")));
  EXPECT_THAT(*folder.List(), SizeIs(1));
  ASSERT_OK(folder.Renew("alice", 10));
  EXPECT_OK(CheckFolder(folder, "alice"));
}

TEST_F(AuthorityFolderTest, AClockBehindTheAuthority) {
  Init();
  FakeClock behind(clock_.Now() - absl::Hours(24));
  ASSERT_OK_AND_ASSIGN(AuthorityFolder folder, AuthorityFolder::Open(path_, {&behind, nullptr}));
  EXPECT_THAT(folder.Issue({"alice", Role::kRead}, 10, false),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("timedatectl set-ntp true")));
  EXPECT_THAT(*folder.List(), SizeIs(0));
}

}  // namespace
}  // namespace kiln
