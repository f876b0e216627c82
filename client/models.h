// Trains, keeps and queries cost models: in a scheduler (remote_models.h) or, without one, in the
// database file (local_models.h). Commands about models need no other interface.
//
// A model is a file (costmodel/model_file.h) or is kept under a name. NamedOrFile is used where
// both are possible.
//
// Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

struct NamedOrFile {
  // Name of a kept model.
  std::string name;
  // Content of a model file; "": the model is kept under `name`.
  std::string bytes;
};

class Models {
 public:
  virtual ~Models() = default;

  // Name for messages: "kiln.db", "the scheduler at 127.0.0.1:9290".
  virtual std::string Name() const = 0;

  struct Trained {
    v1::TrainModelReply reply;
    std::string file;
  };
  // Like the RPC TrainModel. A model without a name is not kept; a scheduler refuses such a
  // request.
  virtual StatusOr<Trained> Train(const v1::TrainModelRequest& request) = 0;
  virtual StatusOr<std::vector<v1::CostModel>> List() = 0;
  // Returns the model's file.
  virtual StatusOr<std::string> Get(const std::string& name) = 0;
  virtual StatusOr<v1::CostModel> Put(const std::string& name, const std::string& file,
                                      bool replace) = 0;
  virtual Status Delete(const std::string& name) = 0;
  // Like the RPCs TestModel and Predict; the model's name in the request is ignored.
  virtual StatusOr<v1::TestModelReply> Test(const NamedOrFile& model,
                                            v1::TestModelRequest request) = 0;
  virtual StatusOr<v1::PredictReply> Predict(const NamedOrFile& model,
                                             v1::PredictRequest request) = 0;
};

// Returns the name under which a nameless file is kept. It is made from the file's content.
std::string ContentName(const std::string& file);

}  // namespace kiln::client
