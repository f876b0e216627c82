#include "base/file/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = TempDir::Make("file_test");
    ASSERT_OK(dir);
    dir_.emplace(std::move(*dir));
  }
  std::string Path(std::string_view name) const { return dir_->Join(name); }
  std::optional<TempDir> dir_;
};

TEST_F(FileTest, WritesAndReadsBack) {
  const std::string content("with\0zero\n", 10), large(1'000'000, 'x');
  for (const std::string& text : {std::string(), content, large, std::string("shorter")}) {
    ASSERT_OK(WriteFile(Path("f"), text));
    ASSERT_OK_AND_ASSIGN(std::string read, ReadFile(Path("f")));
    EXPECT_TRUE(read == text);
    ASSERT_OK(WriteFileAtomically(Path("g"), text));
    ASSERT_OK_AND_ASSIGN(read, ReadFile(Path("g")));
    EXPECT_TRUE(read == text);
  }
}

TEST_F(FileTest, ReadsFilesWithoutASize) {
  ASSERT_OK_AND_ASSIGN(std::string status, ReadFile("/proc/self/status"));
  EXPECT_THAT(status, HasSubstr("Name:"));
}

TEST_F(FileTest, ReadIsLimited) {
  ASSERT_OK(WriteFile(Path("f"), "12345"));
  ASSERT_OK(ReadFile(Path("f"), 5));
  EXPECT_THAT(ReadFile(Path("f"), 4), StatusIs(StatusCode::kResourceExhausted,
                                               AllOf(HasSubstr(Path("f")), HasSubstr("4 bytes"))));
  EXPECT_THAT(ReadFile("/dev/zero", 100), StatusIs(StatusCode::kResourceExhausted, testing::_));
}

TEST_F(FileTest, ErrorsNameThePathAndTheReason) {
  EXPECT_THAT(ReadFile(Path("none")),
              StatusIs(StatusCode::kNotFound,
                       fmt::format("cannot open {}: No such file or directory", Path("none"))));
  EXPECT_THAT(ReadFile(dir_->path()),
              StatusIs(testing::_, AllOf(HasSubstr(dir_->path()), HasSubstr("Is a directory"))));
  EXPECT_THAT(WriteFile(Path("no/such/folder"), "x"),
              StatusIs(StatusCode::kNotFound, HasSubstr("cannot create")));
  EXPECT_THAT(WriteFileAtomically(Path("no/such/folder"), "x"),
              StatusIs(StatusCode::kNotFound, HasSubstr("cannot create")));
  EXPECT_THAT(FileSize(Path("none")), StatusIs(StatusCode::kNotFound, testing::_));
  EXPECT_THAT(WriteFile("/dev/full", "x"),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("No space left on device")));
}

TEST_F(FileTest, AFailedAtomicWriteLeavesNothing) {
  ASSERT_OK(MakeDirs(Path("folder/inside")));
  EXPECT_THAT(WriteFileAtomically(Path("folder"), "x"),
              StatusIs(testing::_, HasSubstr("cannot replace")));
  int entries = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(dir_->path()))
    ++entries;
  EXPECT_EQ(entries, 1);
}

TEST_F(FileTest, ReadersOfAnAtomicFileSeeWholeContents) {
  const std::vector<std::string> contents = {std::string(5000, 'a'), std::string(90'000, 'b')};
  ASSERT_OK(WriteFileAtomically(Path("f"), contents[0]));
  std::atomic<bool> stop = false;
  std::jthread reader([&] {
    while (!stop) {
      StatusOr<std::string> read = ReadFile(Path("f"));
      ASSERT_OK(read);
      ASSERT_TRUE(*read == contents[0] || *read == contents[1]) << read->size();
    }
  });
  for (int i = 0; i < 50; ++i) EXPECT_OK(WriteFileAtomically(Path("f"), contents[i % 2]));
  stop = true;
}

TEST_F(FileTest, AtomicWriteSetsTheMode) {
  ASSERT_OK(WriteFileAtomically(Path("f"), "x", 0600));
  struct stat info{};
  ASSERT_EQ(stat(Path("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(FileTest, Folders) {
  ASSERT_OK(MakeDirs(Path("a/b/c")));
  ASSERT_OK(MakeDirs(Path("a/b/c")));
  EXPECT_TRUE(FileExists(Path("a/b")));
  ASSERT_OK(WriteFile(Path("file"), "12"));
  EXPECT_THAT(MakeDirs(Path("file")), StatusIs(testing::_, HasSubstr(Path("file"))));
  EXPECT_THAT(MakeDirs(Path("file/below")), StatusIs(testing::_, HasSubstr("Not a directory")));
  ASSERT_OK_AND_ASSIGN(int64_t size, FileSize(Path("file")));
  EXPECT_EQ(size, 2);
  ASSERT_OK(RemoveFile(Path("file")));
  ASSERT_OK(RemoveFile(Path("file")));
  EXPECT_FALSE(FileExists(Path("file")));
  EXPECT_THAT(RemoveFile(Path("a")), StatusIs(testing::_, HasSubstr("cannot remove")));
}

TEST_F(FileTest, RemoveTreeDoesNotFollowLinks) {
  ASSERT_OK(MakeDirs(Path("kept")));
  ASSERT_OK(WriteFile(Path("kept/file"), "x"));
  ASSERT_OK(MakeDirs(Path("gone")));
  ASSERT_EQ(symlink(Path("kept").c_str(), Path("gone/link").c_str()), 0);
  ASSERT_OK(RemoveTree(Path("gone")));
  EXPECT_FALSE(FileExists(Path("gone")));
  EXPECT_TRUE(FileExists(Path("kept/file")));
  ASSERT_OK(RemoveTree(Path("gone")));
}

TEST(TempDirTest, WhatAKilledOwnerLeftIsRemoved) {
  ASSERT_OK_AND_ASSIGN(const TempDir root, TempDir::Make("temp_dir_root"));
  setenv("TMPDIR", root.path().c_str(), 1);
  {
    ASSERT_OK_AND_ASSIGN(const TempDir held, TempDir::Make("mine"));
    const std::string left = root.Join("mine.abcdef"), deep = left + "/deep/er";
    const std::string other = root.Join("other.abcdef"), longer = root.Join("mine.abcdefg");
    for (const std::string& path : {deep, other, longer}) ASSERT_OK(MakeDirs(path));
    ASSERT_OK(WriteFile(deep + "/file", "x"));
    RemoveLeftTempDirs("mine", 60);
    EXPECT_TRUE(FileExists(left)) << "it may be new";
    RemoveLeftTempDirs("mine", 0);
    EXPECT_FALSE(FileExists(left));
    EXPECT_TRUE(FileExists(held.path())) << "its owner lives";
    EXPECT_TRUE(FileExists(other));
    EXPECT_TRUE(FileExists(longer));
  }
  unsetenv("TMPDIR");
}

TEST(TempDirTest, RootRemovesWhatItGaveToNobody) {
  if (geteuid() != 0) GTEST_SKIP() << "for root";
  ASSERT_OK_AND_ASSIGN(const TempDir root, TempDir::Make("temp_dir_root"));
  setenv("TMPDIR", root.path().c_str(), 1);
  const std::string nobodys = root.Join("mine.abcdef"), anothers = root.Join("mine.ghijkl");
  const auto make = [](const std::string& path, uid_t owner) {
    return MakeDirs(path).ok() && WriteFile(path + "/file", "x").ok() &&
           chown(path.c_str(), owner, owner) == 0;
  };
  const bool made = make(nobodys, 65534) && make(anothers, 23456);
  RemoveLeftTempDirs("mine", 0);
  unsetenv("TMPDIR");
  if (!made) GTEST_SKIP() << "this container has no other user";
  EXPECT_FALSE(FileExists(nobodys));
  EXPECT_TRUE(FileExists(anothers));
}

TEST(TempDirTest, GoesWithItsOwner) {
  std::string path;
  {
    ASSERT_OK_AND_ASSIGN(TempDir dir, TempDir::Make("temp_dir_test"));
    path = dir.path();
    ASSERT_OK(MakeDirs(dir.Join("a/b")));
    TempDir moved = std::move(dir);
    EXPECT_EQ(moved.path(), path);
    EXPECT_TRUE(FileExists(path));
  }
  EXPECT_FALSE(FileExists(path));
}

TEST(JoinPathTest, Joins) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
}

TEST(AtomicFileTest, IsThereWhenItIsWhole) {
  const auto folder = TempDir::Make("kiln_test");
  ASSERT_OK(folder);
  const std::string path = folder->Join("file");
  ASSERT_OK(WriteFile(path, "old"));
  {
    auto file = AtomicFile::Create(path);
    ASSERT_OK(file);
    ASSERT_OK(file->Append("_bcd"));
    ASSERT_OK(file->Append("ef"));
    ASSERT_OK(file->WriteAt(0, "a"));
    EXPECT_EQ(file->bytes(), 6);
    EXPECT_EQ(*ReadFile(path), "old");
    ASSERT_OK(file->Commit());
  }
  EXPECT_EQ(*ReadFile(path), "abcdef");
  ASSERT_OK(AtomicFile::Create(path)->Append("left alone"));
  EXPECT_EQ(*ReadFile(path), "abcdef");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder->path()), {}), 1);
}

}  // namespace
}  // namespace kiln
