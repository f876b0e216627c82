"""One side of cpu_network_peers.py, in a process of its own: Kiln, ONNX Runtime or PyTorch with one network.

usage: cpu_network_worker.py kiln FILE.kiln THREADS | onnxruntime FILE.onnx THREADS | torch NETWORK[:BATCH] THREADS
       cpu_network_worker.py export NETWORK[:BATCH] FILE.onnx

Prints its ways to run the network as one line of JSON. Each line of input, {"way": NAME, "seconds": S}, is answered by the
seconds of each run, of as many as fit, after one that is not timed.
"""
import json
import os
import sys
import time
import traceback


def kiln_ways(path, threads):
    import kiln
    import numpy
    net = kiln.load(path, threads=threads)
    random = numpy.random.default_rng(1)
    inputs = [random.random(t.shape, "float32") if t.dtype == "float32" else random.integers(0, 1000, t.shape, t.dtype)
              for t in net.inputs]
    out = net(*inputs)
    return {"Kiln": lambda: net(*inputs, out=out)}


def onnxruntime_ways(path, threads):
    import numpy
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {}
    for tensor in session.get_inputs():
        shape = [int(extent) for extent in tensor.shape]
        values = numpy.random.default_rng(1).random(shape, "float32")
        feeds[tensor.name] = values if "float" in tensor.type else (1000 * values).astype("int64")
    return {"ONNX Runtime": lambda: session.run(None, feeds)}


def made(network):
    import peer_networks
    name, _, batch = network.partition(":")
    return peer_networks.make(name, int(batch or 1))


def torch_ways(name, threads):
    # Lays the weights out for the kernels, as the other two do.
    os.environ["TORCHINDUCTOR_FREEZING"] = "1"
    import torch
    torch.set_num_threads(threads)
    ways = {}

    def add(way, network, x):
        def call():
            with torch.inference_mode():
                return network(x)

        try:
            call()
            ways[way] = call
        except Exception:  # pylint: disable=broad-except
            # PyTorch's compiler may fail on a network, or find no C++ compiler. Then there is one
            # way less.
            print(f"PyTorch {way} does not run {name}: {traceback.format_exc().splitlines()[-1]}", file=sys.stderr)

    network, x = made(name)
    layouts = [("", torch.contiguous_format)]
    if x.dim() == 4:
        layouts.append((" channels_last", torch.channels_last))
    for words, layout in layouts:
        network, x = made(name)
        network, x = network.to(memory_format=layout), x.contiguous(memory_format=layout)
        add("eager" + words, network, x)
        add("compile" + words, torch.compile(network), x)
    return ways


def export(name, path):
    import torch
    network, x = made(name)
    torch.onnx.export(network, (x,), path, input_names=["x"], dynamo=True, verbose=False)


def timed(call, seconds):
    call()
    readings, begin = [], time.perf_counter()
    while not readings or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        call()
        readings.append(time.perf_counter() - start)
    return readings


def main():
    # Output of libraries must not get among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kind, what, more = sys.argv[1:]
    if kind == "export":
        export(what, more)
        return
    ways = {"kiln": kiln_ways, "onnxruntime": onnxruntime_ways, "torch": torch_ways}[kind](what, int(more))
    print(json.dumps(list(ways)), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(timed(ways[request["way"]], request["seconds"])), file=answers, flush=True)


if __name__ == "__main__":
    main()
