// Answers requests about cost models from a store, in the messages of the wire. The scheduler
// answers from its store, and so does a client that works on a database file itself. There is one
// implementation, so both answer alike.
//
// Blocks; records are read one at a time. When `stop` is requested, a call ends soon, with
// Cancelled.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "costmodel/model_file.h"
#include "proto/scheduler.pb.h"
#include "store/store.h"

namespace kiln::training {

struct TrainedFile {
  costmodel::ModelFile file;
  v1::TrainModelReply reply;  // without its model
};

// Trains a model on the store's records as `request` says. The caller handles the request's name
// and if_grown. `sources` are for people. Errors are those of Train.
StatusOr<TrainedFile> TrainFile(store::Store& store, const v1::TrainModelRequest& request,
                                std::vector<std::string> sources, int64_t now_s,
                                const std::stop_token& stop);

// Returns the number of records that the request selects.
StatusOr<int64_t> CountRecords(store::Store& store, const v1::ListRecordsRequest& records,
                               const std::stop_token& stop);
// Tells whether the number of records has grown by the share since the model was trained.
bool HasGrown(const costmodel::ModelInfo& since, int64_t records, double share);

// Answers the RPC TrainModel.
StatusOr<v1::TrainModelReply> TrainModel(store::Store& store, const v1::TrainModelRequest& request,
                                         std::vector<std::string> sources, int64_t now_s,
                                         const std::stop_token& stop);

// Tests how well the model ranks the store's records. Ignores the name in the request.
StatusOr<v1::TestModelReply> TestFile(store::Store& store, const costmodel::ModelFile& file,
                                      const v1::TestModelRequest& request,
                                      const std::stop_token& stop);

// Predicts each program of the request. Ignores the name in the request. A program that does not
// parse, replay or lower has its error in its place.
StatusOr<v1::PredictReply> PredictWith(const costmodel::ModelFile& file,
                                       const v1::PredictRequest& request,
                                       const std::stop_token& stop);

// Returns the kept model with this name.
StatusOr<costmodel::ModelFile> ReadModel(store::Store& store, const std::string& name);

// Makes the row to keep a file. Refuses a file that is no model, or that this Kiln cannot use.
StatusOr<store::ModelRow> ModelRowOf(const std::string& name, std::string file, int64_t now_s);
v1::CostModel ModelMessage(const store::ModelRow& row);

v1::ModelQuality QualityMessage(const costmodel::TaskQuality& quality);

// InvalidArgument if the model was trained on another kind of target than this one (target.h).
Status CheckKindOfTarget(const costmodel::ModelInfo& info, const std::string& target);

}  // namespace kiln::training
