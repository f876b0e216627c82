// Files. Each error names the path and the system's reason: "cannot read /x/y: Permission denied".
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/file/fd.h"
#include "base/status.h"

namespace kiln {

// Returns the whole content. ResourceExhausted beyond max_bytes; a folder is an error.
StatusOr<std::string> ReadFile(const std::string& path,
                               size_t max_bytes = std::numeric_limits<size_t>::max());

// Creates or replaces the file.
Status WriteFile(const std::string& path, std::string_view content);

// Replaces the file so that it has the old content or the new, never a part, also after a crash:
// the new content is written beside, synced, and renamed. A new file gets `mode`, less the umask.
Status WriteFileAtomically(const std::string& path, std::string_view content, int mode = 0666);

// WriteFileAtomically in pieces, for files that are never in memory as a whole. Nothing is left of
// the file without a Commit. Not thread-safe.
class AtomicFile {
 public:
  static StatusOr<AtomicFile> Create(const std::string& path, int mode = 0666);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status Append(std::string_view bytes);
  // Replaces bytes that were appended already.
  Status WriteAt(int64_t offset, std::string_view bytes);
  int64_t bytes() const { return bytes_; }
  // Syncs and renames the file. Nothing may follow.
  Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, UniqueFd fd);
  std::string path_;
  // Empty if there is no temporary file any more.
  std::string temporary_;
  UniqueFd fd_;
  int64_t bytes_ = 0;
};

// Makes the folder with all its parents. OK if the folder exists.
Status MakeDirs(const std::string& path);

// Returns true for files of any kind.
bool FileExists(const std::string& path);
StatusOr<int64_t> FileSize(const std::string& path);
// OK if there is no such file.
Status RemoveFile(const std::string& path);
// Removes the folder with everything in it. Links are removed, not followed.
Status RemoveTree(const std::string& path);

// Returns the path of `name` under `folder`. An absolute name stands for itself.
std::string JoinPath(std::string_view folder, std::string_view name);

// A folder under $TMPDIR or /tmp that is removed, with all in it, when its owner is destroyed. The
// owner holds a lock on the folder, which tells it from a folder that a killed process has left
// behind.
class TempDir {
 public:
  // Makes a new folder. Also removes folders of this prefix that were left behind
  // (RemoveLeftTempDirs).
  static StatusOr<TempDir> Make(std::string_view name_prefix);
  TempDir(TempDir&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  TempDir& operator=(TempDir&& other) noexcept;
  ~TempDir();

  const std::string& path() const { return path_; }
  std::string Join(std::string_view name) const { return JoinPath(path_, name); }

 private:
  TempDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  // Empty after a move.
  std::string path_;
  UniqueFd lock_;
};

// Removes folders that TempDir has made with this prefix for this user, if no process holds them
// and they are older than `age_s` seconds. A new folder may be without its lock for a moment.
void RemoveLeftTempDirs(std::string_view name_prefix, int age_s = 60);

}  // namespace kiln
