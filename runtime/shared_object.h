// A shared object loaded from bytes, without a file system: a memfd and dlopen.
#pragma once

#include <memory>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace kiln::runtime {

// A memory file with these bytes, for Open.
StatusOr<UniqueFd> MakeProgramFile(std::string_view elf);

// Unloaded when destroyed.
class SharedObject {
 public:
  // Undefined symbols are looked up now, not at the first call. InvalidArgument with the loader's
  // reason. The object's constructors run in here, and a damaged ELF file may crash the loader.
  static StatusOr<std::unique_ptr<SharedObject>> Load(std::string_view elf);
  // The same in two steps: this one opens no file but for reading.
  static StatusOr<std::unique_ptr<SharedObject>> Open(const UniqueFd& file);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  // NotFound when it does not export `name`.
  StatusOr<void*> Find(const char* name) const;

 private:
  explicit SharedObject(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace kiln::runtime
