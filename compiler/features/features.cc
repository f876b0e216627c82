#include "compiler/features/features.h"

#include <algorithm>

#include "compiler/features/buffer_columns.h"
#include "compiler/features/collect.h"
#include "compiler/features/feature_columns.h"
#include "compiler/features/index_values.h"
#include "compiler/features/kernel_columns.h"
#include "compiler/features/kernel_features.h"
#include "compiler/features/nest_columns.h"
#include "compiler/features/row.h"
#include "compiler/features/store_columns.h"

namespace kiln::features {
namespace {

void WriteStoreRow(KernelFeatures& record, const StoreFeatures& store, Row row) {
  for (size_t i = 0; i < store.ops.of.size(); ++i)
    row.Set(static_cast<int>(i), store.ops.of[i] * store.trips);
  WriteNestColumns(record, store, row);
  WriteBufferColumns(record, store, row);
  WriteStoreColumns(record, store, row);
}

void AddRows(KernelFeatures& record, int index, FloatMatrix& rows) {
  if (record.stores.empty()) return;
  const int first = rows.rows();
  for (const StoreFeatures& store : record.stores) WriteStoreRow(record, store, Row(rows.AddRow()));
  WriteKernelColumns(record, index, Row(rows.row(first)));
  const auto of_kernel = rows.row(first).subspan(col::kFirstOfKernel);
  for (int r = first + 1; r < rows.rows(); ++r)
    std::ranges::copy(of_kernel, rows.row(r).begin() + col::kFirstOfKernel);
}

}  // namespace

FloatMatrix ExtractFeatures(const ir::Program& program, const target::Target& target,
                            const target::HardwareParams& hardware,
                            const device::DeviceModel& device) {
  FloatMatrix rows(col::kNumColumns);
  IndexValues values(program);
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    KernelFeatures record(program, program.kernels[k], target, hardware, device);
    CollectKernel(values, record);
    AddRows(record, static_cast<int>(k), rows);
  }
  return rows;
}

}  // namespace kiln::features
