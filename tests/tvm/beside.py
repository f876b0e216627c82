#!/usr/bin/env python3
"""The three tutorials of examples/python, tuned by a live TVM and by Kiln, and their best programs timed in turns.

Not a part of the automatic tests, since it needs TVM (tests/tvm/run.sh makes its environment) and an hour:

    tests/tvm/run.sh --beside --kiln-python PYTHON [--case layer|template|network ...] [--folder FOLDER]

PYTHON is an interpreter that has Kiln's wheel. Both sides get the same computation, number of trials, threads and options of a
measurement, and the processor of this machine as target. Each tunes in a process of its own, one after the other. Then
each side's program runs in a process that answers one turn at a time, so that both see the same minutes of the machine.

  layer     auto_scheduler: the tutorial's convolution with bias and relu
  template  autotvm: the same convolution without them, by a template for a CPU, the same source on both sides; the tutorial's
            own template binds threads of a GPU
  network   auto_scheduler: relay.testing's resnet-18, which TVM writes as ONNX and Kiln reads, so that weights are the same

TVM's search of the network, which has 24 tasks, draws fewer states a round than TVM's default and ends after --minutes.
Outputs of the operators are compared with numpy's, those of the network with each other. A FOLDER keeps logs, programs and
outputs; what has been tuned in it is not tuned again.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

LAYER = (1, 7, 7, 512, 512, 3, 3, (1, 1), (1, 1))
SHAPES = {"layer": [(1, 512, 7, 7), (512, 512, 3, 3), (1, 512, 1, 1)], "template": [(1, 512, 7, 7), (512, 512, 3, 3)],
          "network": [(1, 3, 224, 224)]}
TUNED_MS, REPEAT = 50, 3
# A round of TVM's search with its own 2048 states and 4 iterations takes minutes on two cores, and
# the network has 24 tasks.
FEWER_STATES = {"evolutionary_search_population": 128, "evolutionary_search_num_iters": 2}


# ---- The computations: one source, with the modules of either side


def layer_of(te, topi):
    def conv2d_layer(N, H, W, CO, CI, KH, KW, stride, padding):
        data = te.placeholder((N, CI, H, W), name="data")
        kernel = te.placeholder((CO, CI, KH, KW), name="kernel")
        bias = te.placeholder((1, CO, 1, 1), name="bias")
        conv = topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation=1, out_dtype="float32")
        return [data, kernel, bias, topi.nn.relu(conv + bias)]

    return conv2d_layer


def template_of(autotvm, te, topi):
    def conv2d(N, H, W, CO, CI, KH, KW, stride, padding):
        data = te.placeholder((N, CI, H, W), name="data")
        kernel = te.placeholder((CO, CI, KH, KW), name="kernel")
        conv = topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation=1, out_dtype="float32")
        s = te.create_schedule([conv.op])
        n, f, y, x = s[conv].op.axis
        rc, ry, rx = s[conv].op.reduce_axis

        cfg = autotvm.get_config()
        cfg.define_split("tile_f", f, num_outputs=2)
        cfg.define_split("tile_y", y, num_outputs=2)
        cfg.define_split("tile_x", x, num_outputs=2)
        cfg.define_split("tile_rc", rc, num_outputs=2)
        cfg.define_knob("auto_unroll_max_step", [0, 16, 64, 512])

        padded = s[conv].op.input_tensors[0]
        local = s.cache_write(conv, "global")
        n, f, y, x = s[conv].op.axis
        fo, fi = cfg["tile_f"].apply(s, conv, f)
        yo, yi = cfg["tile_y"].apply(s, conv, y)
        xo, xi = cfg["tile_x"].apply(s, conv, x)
        s[conv].reorder(n, fo, yo, xo, fi, yi, xi)
        outer = s[conv].fuse(n, fo)
        s[conv].parallel(outer)
        s[conv].vectorize(xi)

        s[local].compute_at(s[conv], xo)
        n, f, y, x = s[local].op.axis
        rc, ry, rx = s[local].op.reduce_axis
        rco, rci = cfg["tile_rc"].apply(s, local, rc)
        s[local].reorder(n, rco, ry, rx, rci, y, f, x)
        s[local].vectorize(x)
        s[local].pragma(rco, "auto_unroll_max_step", cfg["auto_unroll_max_step"].val)
        s[local].pragma(rco, "unroll_explicit", True)

        n, c, y, x = s[padded].op.axis
        s[padded].parallel(c)
        return s, [data, kernel, conv]

    return conv2d


# ---- What a worker computes with


def arrays(case):
    import numpy
    random = numpy.random.default_rng(39)
    return [random.random(shape, "float32") for shape in SHAPES[case]]


def expected(case):
    """An operator's result by numpy: a product for each position of the kernel."""
    import numpy
    inputs = arrays(case)
    data, kernel = inputs[:2]
    padded = numpy.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = sum(numpy.einsum("nchw,fc->nfhw", padded[:, :, y:y + 7, x:x + 7], kernel[:, :, y, x])
              for y in range(3) for x in range(3))
    return out if case == "template" else numpy.maximum(out + inputs[2], 0)


def network_file(folder):
    return os.path.join(folder, "resnet-18.onnx")


def program_file(folder, case, side):
    return os.path.join(folder, f"{case}.{'so' if side == 'tvm' else 'kiln'}")


# ---- TVM


def tvm_target():
    import tvm
    return tvm.target.Target(f"llvm -mcpu={tvm.target.codegen.llvm_get_system_cpu()}")


def tvm_network(folder):
    import tvm
    from tvm import relay
    import tvm.relay.testing
    # Its weights are random anew each time; the file has those of the first time.
    module, params = relay.testing.resnet.get_workload(num_layers=18, batch_size=1, image_shape=(3, 224, 224), layout="NCHW")
    weights = os.path.join(folder, "resnet-18.params")
    if os.path.exists(weights):
        with open(weights, "rb") as file:
            params = relay.load_param_dict(file.read())
    else:
        from tvm.contrib.target.onnx import to_onnx
        to_onnx(module, params, "resnet-18", path=network_file(folder))
        with open(weights, "wb") as file:
            file.write(relay.save_param_dict(params))
    with tvm.transform.PassContext(opt_level=3):
        return relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(module), params


def callback_until(end):
    """Ends the tuning after the batch in which the time is over; TVM has no option for that."""
    from tvm.auto_scheduler.measure import PythonBasedMeasureCallback

    class Until(PythonBasedMeasureCallback):
        def callback(self, policy, inputs, results):
            if time.time() > end:
                raise TimeoutError("the minutes are over")

    return Until()


def tune_tvm(case, folder, trials, minutes, per_round):
    import tvm
    from tvm import auto_scheduler, autotvm, relay, te, topi
    target, log = tvm_target(), os.path.join(folder, f"{case}.tvm.json")
    output = program_file(folder, case, "tvm")
    if case == "template":
        conv2d = autotvm.template("beside/conv2d")(template_of(autotvm, te, topi))
        task = autotvm.task.create("beside/conv2d", args=LAYER, target=target)
        option = autotvm.measure_option(builder=autotvm.LocalBuilder(),
                                        runner=autotvm.LocalRunner(repeat=REPEAT, min_repeat_ms=TUNED_MS, timeout=10))
        started = time.time()
        autotvm.tuner.XGBTuner(task).tune(n_trial=trials, measure_option=option, callbacks=[autotvm.callback.log_to_file(log)])
        seconds = time.time() - started
        with autotvm.apply_history_best(log), target:
            schedule, tensors = conv2d(*LAYER)
            tvm.build(schedule, tensors, target).export_library(output)
        return seconds
    runner = auto_scheduler.LocalRunner(repeat=REPEAT, min_repeat_ms=TUNED_MS)
    if case == "layer":
        options = auto_scheduler.TuningOptions(num_measure_trials=trials, num_measures_per_round=per_round, runner=runner,
                                               measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=1)
        function = auto_scheduler.register_workload(layer_of(te, topi))
        task = auto_scheduler.SearchTask(func=function, args=LAYER, target=target)
        started = time.time()
        task.tune(options)
        seconds = time.time() - started
        tvm.build(*task.apply_best(log), target).export_library(output)
        return seconds
    module, params = tvm_network(folder)
    tasks, weights = auto_scheduler.extract_tasks(module["main"], params, target)
    print(len(tasks), "tasks", flush=True)
    started = time.time()
    until = callback_until(started + 60 * minutes)
    options = auto_scheduler.TuningOptions(num_measure_trials=trials, num_measures_per_round=per_round, runner=runner,
                                           measure_callbacks=[auto_scheduler.RecordToFile(log), until], verbose=1)
    try:
        auto_scheduler.TaskScheduler(tasks, weights).tune(options, search_policy_params=FEWER_STATES)
    except Exception as error:  # pylint: disable=broad-except
        # TVM makes an error of its own of a callback's.
        if time.time() < started + 60 * minutes:
            raise
        print("ended by time:", str(error).splitlines()[-1], flush=True)
    seconds = time.time() - started
    with auto_scheduler.ApplyHistoryBest(log):
        with tvm.transform.PassContext(opt_level=3, config={"relay.backend.use_auto_scheduler": True}):
            relay.build(module, target=target, params=params).export_library(output)
    return seconds


def serve_tvm(case, folder, _):
    import numpy
    import tvm
    from tvm.contrib import graph_executor
    device = tvm.cpu()
    library = tvm.runtime.load_module(program_file(folder, case, "tvm"))
    inputs = [tvm.nd.array(each, device) for each in arrays(case)]
    if case == "network":
        graph = graph_executor.GraphModule(library["default"](device))
        graph.set_input(0, inputs[0])
        graph.run()
        return graph.get_output(0).numpy(), graph.run, lambda ms: graph.module.time_evaluator(
            "run", device, number=1, repeat=1, min_repeat_ms=ms)().mean
    inputs.append(tvm.nd.array(numpy.zeros((1, 512, 7, 7), "float32"), device))
    library(*inputs)
    entry = library.entry_name
    return inputs[-1].numpy(), lambda: library(*inputs), lambda ms: library.time_evaluator(
        entry, device, number=1, repeat=1, min_repeat_ms=ms)(*inputs).mean


# ---- Kiln


def tune_kiln(case, folder, trials):
    import kiln
    from kiln import auto_scheduler, autotvm, te, topi
    log, output = os.path.join(folder, f"{case}.kiln.json"), program_file(folder, case, "kiln")
    client = kiln.local(os.path.join(folder, f"{case}.db"), device="cpu", threads=int(os.environ["BESIDE_THREADS"]))
    auto_scheduler.use(client)
    if case == "template":
        autotvm.template("beside/conv2d")(template_of(autotvm, te, topi))
        task = autotvm.task.create("beside/conv2d", args=LAYER, target="llvm")
        option = autotvm.measure_option(builder=autotvm.LocalBuilder(),
                                        runner=autotvm.LocalRunner(repeat=REPEAT, min_repeat_ms=TUNED_MS, timeout=10))
        started = time.time()
        autotvm.tuner.XGBTuner(task).tune(n_trial=trials, measure_option=option, callbacks=[autotvm.callback.log_to_file(log)])
        seconds = time.time() - started
        client.compile(task.computation, output, strict=True)
        return seconds
    options = auto_scheduler.TuningOptions(
        num_measure_trials=trials, runner=auto_scheduler.LocalRunner(repeat=REPEAT, min_repeat_ms=TUNED_MS),
        measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=1)
    if case == "layer":
        function = auto_scheduler.register_workload(layer_of(te, topi))
        task = auto_scheduler.SearchTask(func=function, args=LAYER, target="llvm")
        started = time.time()
        task.tune(options)
        seconds = time.time() - started
        client.compile(te.create(function(*LAYER)), output, strict=True)
        return seconds
    tasks, weights = auto_scheduler.extract_tasks(network_file(folder), target="llvm")
    print(len(tasks), "tasks", flush=True)
    started = time.time()
    auto_scheduler.TaskScheduler(tasks, weights).tune(options)
    seconds = time.time() - started
    client.compile(network_file(folder), output, target="llvm")
    return seconds


def serve_kiln(case, folder, threads):
    import kiln
    network = kiln.load(program_file(folder, case, "kiln"), threads=threads)
    given = dict(zip(["data", "kernel", "bias"], arrays(case)))
    inputs = arrays(case) if case == "network" else [given[each.name] for each in network.inputs]
    output = network(*inputs)
    return output.copy(), lambda: network(*inputs, out=output), lambda ms: network.time_evaluator(
        number=1, repeat=1, min_repeat_ms=ms)(*inputs).mean


# ---- Processes


def tune(side, case, arguments):
    folder, trials = arguments.folder, arguments.trials
    seconds = tune_tvm(case, folder, trials, arguments.minutes, arguments.per_round) if side == "tvm" else tune_kiln(
        case, folder, trials)
    with open(os.path.join(folder, f"{case}.{side}.json"), encoding="utf-8") as file:
        trials = sum(1 for _ in file)
    with open(os.path.join(folder, f"{case}.{side}.seconds"), "w", encoding="utf-8") as file:
        json.dump({"seconds": seconds, "trials": trials}, file)


def serve(side, case, folder, threads):
    """Saves the outputs, then answers each line, milliseconds: the mean time of a run by the time evaluator of the side, and
    the mean CPU time of the process in a loop of calls, which other work on the machine disturbs less. Threads that spin while
    they wait are in the latter, so that it says something with one thread alone."""
    import numpy
    output, call, measure = (serve_tvm if side == "tvm" else serve_kiln)(case, folder, threads)
    numpy.save(os.path.join(folder, f"{case}.{side}.npy"), output)
    print("ready", flush=True)
    for line in sys.stdin:
        milliseconds = int(line)
        print(json.dumps({"wall": measure(milliseconds), "cpu": cpu_time(call, milliseconds / 1000)}), flush=True)


def cpu_time(call, seconds):
    call()
    started, count = time.process_time(), 0
    while count == 0 or time.process_time() - started < seconds:
        call()
        count += 1
    return (time.process_time() - started) / count


def compare(case, folder):
    """Prints how far the outputs of the two sides are from numpy's, or those of Kiln from those of TVM."""
    import numpy
    got = {side: numpy.load(os.path.join(folder, f"{case}.{side}.npy")) for side in ("tvm", "kiln")}
    want = got.pop("tvm") if case == "network" else expected(case)
    print(json.dumps({side: float(numpy.max(numpy.abs(out - want)) / numpy.max(numpy.abs(want))) for side, out in got.items()}))


class Worker:
    def __init__(self, arguments, side, case, threads):
        environment = dict(os.environ, TVM_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
        self._process = subprocess.Popen([python_of(arguments, side), os.path.abspath(__file__), "--role", f"serve-{side}",
                                          "--case", case, "--folder", arguments.folder, "--threads", str(threads)],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self._expect_ready()

    def _expect_ready(self):
        for line in self._process.stdout:
            if line.strip() == "ready":
                return
        sys.exit(f"a worker ended with status {self._process.wait()} before it was ready")

    def measure(self, milliseconds):
        self._process.stdin.write(f"{milliseconds}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def python_of(arguments, side):
    return sys.executable if side == "tvm" else arguments.kiln_python


def run_case(arguments, case):
    trials = arguments.network_trials if case == "network" else arguments.trials
    told = {"case": case, "tuning": {}, "turns": {}}
    for side in ("tvm", "kiln"):
        environment = dict(os.environ, TVM_NUM_THREADS=str(arguments.threads), BESIDE_THREADS=str(arguments.threads))
        seconds_file = os.path.join(arguments.folder, f"{case}.{side}.seconds")
        if not os.path.exists(seconds_file):
            subprocess.run([python_of(arguments, side), os.path.abspath(__file__), "--role", f"tune-{side}", "--case", case,
                            "--folder", arguments.folder, "--trials", str(trials), "--minutes", str(arguments.minutes),
                            "--per-round", str(arguments.per_round)],
                           check=True, env=environment, cwd=arguments.folder)
        with open(seconds_file, encoding="utf-8") as file:
            told["tuning"][side] = json.load(file)
    for threads in sorted({1, arguments.threads}):
        workers = {side: Worker(arguments, side, case, threads) for side in ("tvm", "kiln")}
        turns = {side: [] for side in workers}
        for _ in range(arguments.turns):
            for side, worker in workers.items():
                turns[side].append(worker.measure(arguments.turn_ms))
        for worker in workers.values():
            worker.close()
        told["turns"][f"{threads} thread{'s' if threads > 1 else ''}"] = {
            side: {f"{kind}_{name}_us": round(1e6 * of([turn[kind] for turn in times]), 1)
                   for kind in ("wall", "cpu") for name, of in (("best", min), ("median", statistics.median))}
            for side, times in turns.items()}
    subprocess.run([sys.executable, os.path.abspath(__file__), "--role", "compare", "--case", case, "--folder", arguments.folder],
                   check=True)
    print(json.dumps(told), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln-python", default="python3")
    parser.add_argument("--case", action="append", choices=list(SHAPES))
    parser.add_argument("--folder", default="beside")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--network-trials", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=12, help="for TVM to tune the network, at most")
    parser.add_argument("--per-round", type=int, default=64, help="trials of a round of TVM's auto_scheduler")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--turn-ms", type=int, default=200)
    parser.add_argument("--role", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    # Otherwise extraction downloads autotvm's records.
    os.environ.setdefault("TOPHUB_LOCATION", "NONE")
    arguments.folder = os.path.abspath(arguments.folder)
    os.makedirs(arguments.folder, exist_ok=True)
    cases = arguments.case or list(SHAPES)
    if not arguments.role:
        for case in cases:
            run_case(arguments, case)
        return
    action, _, side = arguments.role.partition("-")
    if action == "tune":
        tune(side, cases[0], arguments)
    elif action == "serve":
        serve(side, cases[0], arguments.folder, arguments.threads)
    else:
        compare(cases[0], arguments.folder)


if __name__ == "__main__":
    main()
