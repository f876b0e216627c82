// Converts results of imports and bindings into messages of the wire.
#pragma once

#include "proto/scheduler.pb.h"
#include "store/bind.h"
#include "store/import_log.h"

namespace kiln::store {

v1::ImportRecordsReply ReplyOf(const ImportResult& result);
v1::BindKeyReply ReplyOf(const BindResult& result, const Computation& computation);

}  // namespace kiln::store
