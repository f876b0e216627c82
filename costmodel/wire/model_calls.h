// What is asked of cost models over a store, in the messages of the wire: for the scheduler, which
// answers from its store, and for a client that works on a database file itself. There is one
// implementation, so both answer alike.
//
// Blocks; records are read one at a time. `stop` requested: ends soon, with Cancelled.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "costmodel/model_file.h"
#include "proto/scheduler.pb.h"
#include "store/store.h"

namespace kiln::costmodel {

struct TrainedFile {
  ModelFile file;
  v1::TrainModelReply reply;  // without its model
};

// A model out of the store's records, as `request` says; what it says of names and of if_grown is
// the caller's. `sources`: for people. Errors: those of Train.
StatusOr<TrainedFile> TrainFile(store::Store& store, const v1::TrainModelRequest& request,
                                std::vector<std::string> sources, int64_t now_s,
                                const std::stop_token& stop);

// How many records the request is for.
StatusOr<int64_t> CountRecords(store::Store& store, const v1::ListRecordsRequest& records,
                               const std::stop_token& stop);
// Has the number of records grown by the share since the model was trained?
bool HasGrown(const ModelInfo& since, int64_t records, double share);

// As the RPC TrainModel.
StatusOr<v1::TrainModelReply> TrainModel(store::Store& store, const v1::TrainModelRequest& request,
                                         std::vector<std::string> sources, int64_t now_s,
                                         const std::stop_token& stop);

// How well the model ranks the store's records; the request's name is not looked at.
StatusOr<v1::TestModelReply> TestFile(store::Store& store, const ModelFile& file,
                                      const v1::TestModelRequest& request,
                                      const std::stop_token& stop);

// What the model says of each program; the request's name is not looked at. A program that does not
// parse, replay or lower has its error in its place.
StatusOr<v1::PredictReply> PredictWith(const ModelFile& file, const v1::PredictRequest& request,
                                       const std::stop_token& stop);

// The kept model of the name.
StatusOr<ModelFile> ReadModel(store::Store& store, const std::string& name);

// A file as it may be kept: refused where it is no model, or one that this Kiln cannot use.
StatusOr<store::ModelRow> ModelRowOf(const std::string& name, std::string file, int64_t now_s);
v1::CostModel ModelMessage(const store::ModelRow& row);

v1::ModelQuality QualityMessage(const TaskQuality& quality);

// InvalidArgument: the model was trained on another kind of target than this one (target.h).
Status CheckKindOfTarget(const ModelInfo& info, const std::string& target);

}  // namespace kiln::costmodel
