// A Store in memory, for tests and for runs whose records nobody wants to keep. Its content is lost
// with the object. Cost: best-record queries read all records.
#pragma once

#include <memory>

#include "store/store.h"

namespace kiln::store {

std::unique_ptr<Store> NewMemoryStore();

}  // namespace kiln::store
