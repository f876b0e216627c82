// A shared object loaded from bytes, without a file system: a memfd and dlopen.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"

namespace kiln::runner {

// Unloaded when destroyed.
class SharedObject {
 public:
  // Undefined symbols are looked up now, not at the first call. InvalidArgument with the loader's
  // reason. The object's constructors run in here, and a damaged ELF file may crash the loader.
  static StatusOr<std::unique_ptr<SharedObject>> Load(std::string_view elf);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  // NotFound when it does not export `name`.
  StatusOr<void*> Find(const char* name) const;

 private:
  explicit SharedObject(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace kiln::runner
