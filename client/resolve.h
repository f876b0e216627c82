// What a user means by WORKLOAD, JOB, RECORD, an operator or a text file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/commands.h"

namespace kiln::client {

// At most one of the three is set.
struct Subject {
  std::optional<v1::Record> record;
  std::string job_id;
  std::string workload_key;
  dag::DagPtr dag;  // where an operator or a file was named
};

// In this order: --record; an operator or text file; a workload key (starts with '['); a job; the
// number of a record. Nothing at all: the newest job that has a task.
StatusOr<Subject> Resolve(const SubjectFlags& flags, Archive& archive);

// The workload that the words name, without looking at any record; nullopt: they name none.
StatusOr<std::optional<Workload>> NamedWorkload(const SubjectFlags& flags);

// The best records of the subject (or the record itself), those of flags.target and flags.task if
// given. Of forms of one work the fastest comes first. Never empty: NotFound says what there is
// none for.
StatusOr<std::vector<v1::Record>> BestOf(const Subject& subject, const SubjectFlags& flags,
                                         Archive& archive);

// The record's own DAG; of an imported one, which has none, that of the subject's operator or of
// the known workload with its key.
StatusOr<dag::DagPtr> DagOfRecord(const v1::Record& record, const Subject& subject);

}  // namespace kiln::client
