// The commands about records: one schedule of a record in every form, and records by the many.
#pragma once

#include "client/cli/command.h"

namespace kiln::client {

Run AddBest(CLI::App& best, SessionFlags& session);
Run AddShow(CLI::App& show, SessionFlags& session);
Run AddExportKernel(CLI::App& export_kernel, SessionFlags& session);
Run AddTrial(CLI::App& trial, SessionFlags& session);

// kiln records ...
Run AddRecordsExport(CLI::App& out, SessionFlags& session);
Run AddRecordsImport(CLI::App& in, SessionFlags& session);
Run AddRecordsBind(CLI::App& bind, SessionFlags& session);
Run AddRecordsDistill(CLI::App& distill, SessionFlags& session);
Run AddRecordsShip(CLI::App& ship, SessionFlags& session);
Run AddRecordsMeasure(CLI::App& measure, SessionFlags& session);
Run AddRecordsStats(CLI::App& stats, SessionFlags& session);
Run AddRecordsList(CLI::App& list, SessionFlags& session);
Run AddRecordsCurve(CLI::App& curve, SessionFlags& session);
Run AddRecordsDelete(CLI::App& remove, SessionFlags& session);

}  // namespace kiln::client
