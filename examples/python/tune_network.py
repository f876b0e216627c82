"""TVM's tutorial "Auto-scheduling a Neural Network": tasks, the task scheduler, the whole network.

usage: tune_network.py [--network NAME|FILE.onnx] [--trials N] [--target llvm|cuda] [--log FILE]

The tutorial tunes resnet-18 for a GPU: --network network:resnet-18 --target cuda. It makes 200 trials
as a demonstration, which are the default here as well. More trials find faster programs: the tutorial
recommends some 900 for each task, which is --trials 20000 for resnet-18.
"""

import argparse

import kiln
import numpy
from kiln import auto_scheduler


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="network:mlp")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--log", default="network.json")
    arguments = parser.parse_args()
    target, network = arguments.target, arguments.network
    client = kiln.local(device="cuda" if target.startswith("cuda") else "cpu")
    auto_scheduler.use(client)

    # Extract the tasks from the network.
    print("Extract tasks...")
    tasks, task_weights = auto_scheduler.extract_tasks(network, target=target)
    for idx, task in enumerate(tasks):
        print(f"========== Task {idx}  (workload key: {task.workload_key}) ==========")
        print(task.compute_dag)

    # Tune them together: the ones that weigh most get the most trials.
    print("Begin tuning...")
    tuner = auto_scheduler.TaskScheduler(tasks, task_weights)
    tune_option = auto_scheduler.TuningOptions(
        num_measure_trials=arguments.trials,
        runner=auto_scheduler.LocalRunner(repeat=3, min_repeat_ms=50),
        measure_callbacks=[auto_scheduler.RecordToFile(arguments.log)],
    )
    job = tuner.tune(tune_option)
    for task in job.status().tasks:
        best = "-" if task.best_cost_s is None else f"{task.best_cost_s * 1e3:.3f} ms"
        print(f"{task.description:60} {best:>12} {task.trials:5} trials")

    # Compile the network with what was found, run it, and time it.
    module = client.compile(network, target=target)
    inputs = [numpy.random.uniform(size=each.shape).astype(each.dtype) for each in module.inputs]
    outputs = module(*inputs)
    print("Output:", outputs if isinstance(outputs, tuple) else outputs.shape)
    print("Mean inference time: %.3f ms" % (numpy.mean(module.bench(*inputs, repeat=3)) * 1000))


if __name__ == "__main__":
    main()
