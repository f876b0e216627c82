"""The pages that describe a set-up, and what a check puts in the place of what it does not have.

Each rule replaces a pattern of a command. NOT_TYPED marks commands that nothing can stand for.
"""
import dataclasses

NOT_TYPED = ":"
# The id of the newest job, in a replacement.
NEWEST_JOB = r"""$(kiln jobs --limit 1 --json | grep -oE '"id":"[0-9a-f]+"' | cut -d'"' -f4)"""


@dataclasses.dataclass(frozen=True)
class Setup:
    name: str
    page: str
    section: str = ""
    # Pairs of a pattern and its replacement, in the order in which they are applied.
    instead: tuple[tuple[str, str], ...] = ()
    # The commands of each host that are typed before the page begins.
    before: tuple[tuple[str, str], ...] = ()
    # The host of commands whose prompt names none.
    host: str = "box"


SETUPS = [
    Setup(
        "one-box", "docs/howto/one-box-with-gpus.md",
        instead=(
            # Two devices null stand for GPUs.
            (r"^kiln farm up .*", r"\g<0> --device null --device null"),
            (r"--target cuda", "--target null"),
            (r"--device GPU-1f0c2a", "--device null"),
            (r"--minutes 10", "--minutes 0.2"),
        )),
    Setup(
        "laptop-and-lab", "docs/howto/laptop-and-lab.md",
        # A small model stands for the user's, and the CPU for the GPU.
        before=(("laptop", "cp /srv/pages/model.onnx ."), ),
        instead=(
            (r"^scp (-rp )?box:(\S+) ", r"cp -rp ../box/\2 "),
            (r"^scp model.kiln production:", "cp model.kiln /tmp/"),
            (r"--target cuda --minutes 20", "--target llvm --minutes 0.2"),
            (r'--target "cuda -arch=sm_90"', "--target llvm"),
            (r"\bJOB\b", NEWEST_JOB),
        )),
    Setup(
        "slurm", "docs/slurm.md", "Set-up",
        host="login",
        instead=(
            (r"^\./kiln", "kiln"),
            (r"--partition gpu --device cuda --gres gpu:1", "--partition main --device cpu --gres device:1"),
            # The one node has 16 CPUs on paper and the cores of this machine.
            (r"--runners 8 --builders 4", "--runners 2 --builders 1 --builder-cpus 2 --runner-arg=--canary-seconds=0"),
            (r"^kiln fleet .*", r"\g<0> &"),
            (r"--args 1024,1024,1024 --target cuda", "--args 256,256,256 --target llvm --trials 16"),
        )),
    Setup(
        "kubernetes", "docs/install.md", "Kubernetes",
        # There is no cluster: kustomize makes the manifests, and nothing takes them.
        before=(("box", "cp -r /srv/pages/deploy ."), ),
        instead=(
            (r"kubectl apply -k (\S+)", r"kubectl kustomize \1 > manifests.yaml"),
            (r" \| kubectl .*apply -f -", " > secrets.yaml"),
            (r"^(podman|kubectl apply|kubectl --namespace).*", NOT_TYPED),
            (r"^kiln tune .*", NOT_TYPED),
        )),
    Setup(
        "ci", "docs/ci.md",
        instead=(
            (r"--minutes 10", "--minutes 0.2"),
            (r"--trials 2000", "--trials 40"),
            # Exit status 1 is a judgement, and a busy machine makes programs slower.
            (r"^kiln verify build/$", r"\g<0> --most-slower 0"),
            (r".*--baseline.*", r"\g<0>; [ $? -le 1 ]"),
        )),
]
