"""Writes the node suite of the onnx package that is installed as folders of cases.

usage: write_cases.py FOLDER

FOLDER/opset-23-and-below and FOLDER/opset-24-and-above get the cases of ONNX's own operators,
FOLDER/other-domains those of classical learning and of training: a folder for each, with
model.onnx and test_data_set_N. A case is in the folder that its operator set names.
"""

import os
import sys
import warnings

import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

LAST_OLDER_VERSION = 23


def group_of(model):
    versions = {entry.domain: entry.version for entry in model.opset_import}
    if any(domain not in ("", "ai.onnx") for domain in versions):
        return "other-domains"
    is_older = versions.get("", 0) <= LAST_OLDER_VERSION
    return "opset-23-and-below" if is_older else "opset-24-and-above"


def to_proto(value, info):
    """Bytes of a value of a case, which is of the type that the model says."""
    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString()
    kinds = {
        "map_type": numpy_helper.from_dict,
        "sequence_type": numpy_helper.from_list,
        "optional_type": numpy_helper.from_optional,
    }
    make = kinds.get(info.type.WhichOneof("value"), numpy_helper.from_array)
    return make(value, info.name).SerializeToString()


def write_values(folder, prefix, values, infos):
    for index, (value, info) in enumerate(zip(values, infos)):
        with open(os.path.join(folder, f"{prefix}_{index}.pb"), "wb") as file:
            file.write(to_proto(value, info))


def write_case(folder, case):
    os.makedirs(folder)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(case.model.SerializeToString())
    for index, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{index}")
        os.makedirs(data)
        write_values(data, "input", inputs, case.model.graph.input)
        write_values(data, "output", outputs, case.model.graph.output)


def main():
    warnings.filterwarnings("ignore")
    target = sys.argv[1]
    counts = {}
    for case in load_model_tests(kind="node"):
        group = group_of(case.model)
        write_case(os.path.join(target, group, case.name), case)
        counts[group] = counts.get(group, 0) + 1
    for group, count in sorted(counts.items()):
        print(f"onnx {onnx.__version__}: {count} cases of {group}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
