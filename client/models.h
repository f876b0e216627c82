// Where cost models are trained, kept and asked: a scheduler (remote_models.h) or, without one, the
// database file (local_models.h). Commands about models know this and nothing else.
//
// A model is a file (costmodel/model_file.h) or one that is kept under a name: where both are
// possible, NamedOrFile says which it is.
//
// One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

struct NamedOrFile {
  std::string name;   // of a kept one
  std::string bytes;  // of a file; "": it is a kept one
};

class Models {
 public:
  virtual ~Models() = default;

  // For messages: "kiln.db", "the scheduler at 127.0.0.1:9290".
  virtual std::string Name() const = 0;

  struct Trained {
    v1::TrainModelReply reply;
    std::string file;
  };
  // As the RPC TrainModel. Without a name it is not kept, which a scheduler refuses.
  virtual StatusOr<Trained> Train(const v1::TrainModelRequest& request) = 0;
  virtual StatusOr<std::vector<v1::CostModel>> List() = 0;
  // The file.
  virtual StatusOr<std::string> Get(const std::string& name) = 0;
  virtual StatusOr<v1::CostModel> Put(const std::string& name, const std::string& file,
                                      bool replace) = 0;
  virtual Status Delete(const std::string& name) = 0;
  // As the RPCs TestModel and Predict; the model's name in the request is not looked at.
  virtual StatusOr<v1::TestModelReply> Test(const NamedOrFile& model,
                                            v1::TestModelRequest request) = 0;
  virtual StatusOr<v1::PredictReply> Predict(const NamedOrFile& model,
                                             v1::PredictRequest request) = 0;
};

// The name under which a file is kept that has none: of its content.
std::string ContentName(const std::string& file);

}  // namespace kiln::client
