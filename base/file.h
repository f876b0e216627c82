// Files. Each error names the path and the system's reason: "cannot read /x/y: Permission denied".
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace kiln {

// The whole content. ResourceExhausted beyond max_bytes; a folder is an error.
StatusOr<std::string> ReadFile(const std::string& path,
                               size_t max_bytes = std::numeric_limits<size_t>::max());

// Creates or replaces.
Status WriteFile(const std::string& path, std::string_view content);

// The file has the old content or the new, never a part, also after a crash: written beside,
// synced, renamed. A new file gets `mode`, less the umask.
Status WriteFileAtomically(const std::string& path, std::string_view content, int mode = 0666);

// WriteFileAtomically in pieces, for files that never are in memory as a whole. Without a Commit
// nothing is left of it. Not thread-safe.
class AtomicFile {
 public:
  static StatusOr<AtomicFile> Create(const std::string& path, int mode = 0666);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status Append(std::string_view bytes);
  // Replaces bytes that are there already.
  Status WriteAt(int64_t offset, std::string_view bytes);
  int64_t bytes() const { return bytes_; }
  // Synced and renamed. Nothing may follow.
  Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, UniqueFd fd);
  std::string path_;
  std::string temporary_;  // empty: there is none any more
  UniqueFd fd_;
  int64_t bytes_ = 0;
};

// With all parents; fine when it exists.
Status MakeDirs(const std::string& path);

bool FileExists(const std::string& path);  // of any kind
StatusOr<int64_t> FileSize(const std::string& path);
// OK when there is none.
Status RemoveFile(const std::string& path);
// With everything in it; links are removed, not followed.
Status RemoveTree(const std::string& path);

// `name` under `folder`; an absolute name stands for itself.
std::string JoinPath(std::string_view folder, std::string_view name);

// A folder that goes, with all in it, when its owner does. Under $TMPDIR or /tmp. Its owner holds a
// lock on it: one that is left behind by a process that was killed can be told by that.
class TempDir {
 public:
  // Also removes those of this prefix that were left behind (RemoveLeftTempDirs).
  static StatusOr<TempDir> Make(std::string_view name_prefix);
  TempDir(TempDir&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  TempDir& operator=(TempDir&& other) noexcept;
  ~TempDir();

  const std::string& path() const { return path_; }
  std::string Join(std::string_view name) const { return JoinPath(path_, name); }

 private:
  TempDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;  // empty after a move
  UniqueFd lock_;
};

// Of the folders that TempDir has made with this prefix, removes those of this user that nobody
// holds and that are older than `age_s`: so long a new one may be without its lock.
void RemoveLeftTempDirs(std::string_view name_prefix, int age_s = 60);

}  // namespace kiln
