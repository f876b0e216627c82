"""Networks of Kiln's zoo (docs/zoo.md) in PyTorch, layer by layer, with random weights. torchvision has those that follow
its definitions; nothing is downloaded."""


def residual(depth):
    """Pre-activation units, as network:resnet-18 and the deeper ones."""
    import torch
    nn = torch.nn
    units, bottleneck = {18: ((2, 2, 2, 2), False), 34: ((3, 4, 6, 3), False), 50: ((3, 4, 6, 3), True)}[depth]

    class Unit(nn.Module):
        def __init__(self, channels_in, channels, stride, changes_shape):
            super().__init__()
            shapes = [(3, channels, stride), (3, channels, 1)]
            if bottleneck:
                shapes = [(1, channels, stride), (3, channels, 1), (1, 4 * channels, 1)]
            self.norms, self.convs = nn.ModuleList(), nn.ModuleList()
            channels_of_conv = channels_in
            for kernel, filters, conv_stride in shapes:
                self.norms.append(nn.BatchNorm2d(channels_of_conv))
                self.convs.append(nn.Conv2d(channels_of_conv, filters, kernel, conv_stride, kernel // 2, bias=False))
                channels_of_conv = filters
            self.shortcut = nn.Conv2d(channels_in, channels_of_conv, 1, stride, bias=False) if changes_shape else None

        def forward(self, x):
            y, shortcut = x, x
            for i, (norm, conv) in enumerate(zip(self.norms, self.convs)):
                y = torch.relu(norm(y))
                if i == 0 and self.shortcut is not None:
                    shortcut = self.shortcut(y)
                y = conv(y)
            return y + shortcut

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64),
                                      nn.ReLU(), nn.MaxPool2d(3, 2, 1))
            body, channels_in = [], 64
            for stage, (count, channels) in enumerate(zip(units, (64, 128, 256, 512))):
                for i in range(count):
                    body.append(Unit(channels_in, channels, 2 if i == 0 and stage > 0 else 1, i == 0))
                    channels_in = 4 * channels if bottleneck else channels
            self.units, self.norm, self.classes = nn.Sequential(*body), nn.BatchNorm2d(channels_in), nn.Linear(channels_in, 1000)

        def forward(self, x):
            y = torch.relu(self.norm(self.units(self.stem(x))))
            return torch.softmax(self.classes(y.mean((2, 3))), 1)

    return Network().eval()


def attention_of(projections, x, heads, is_causal):
    """Attention of all heads over the tokens of x, before its last projection."""
    import torch
    batch, tokens, features = x.shape
    parts = projections(x).view(batch, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
    y = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=is_causal)
    return y.transpose(1, 2).reshape(batch, tokens, features)


def bert_base(layers=12, features=768, heads=12, words=30522, positions=512, has_types=True):
    import torch
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.projections, self.out = nn.Linear(features, 3 * features), nn.Linear(features, features)
            self.up, self.down = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)
            self.norm1, self.norm2 = nn.LayerNorm(features, 1e-12), nn.LayerNorm(features, 1e-12)

        def forward(self, x):
            x = self.norm1(self.out(attention_of(self.projections, x, heads, is_causal=False)) + x)
            return self.norm2(self.down(nn.functional.gelu(self.up(x))) + x)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions, self.types = [nn.Embedding(n, features) for n in (words, positions, 2)]
            self.has_types = has_types  # without them there is no pooled output either
            self.norm, self.pooler = nn.LayerNorm(features, 1e-12), nn.Linear(features, features)
            self.layers = nn.Sequential(*[Layer() for _ in range(layers)])

        def forward(self, ids):
            x = self.words(ids) + self.positions.weight[: ids.shape[1]]
            if not self.has_types:
                return self.layers(self.norm(x))
            x = self.layers(self.norm(x + self.types.weight[0]))
            return x, torch.tanh(self.pooler(x[:, 0]))

    return Network().eval()


def gpt2_small(layers=12, features=768, heads=12, words=50257, positions=1024):
    """The logits of the next token."""
    import torch
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.projections, self.out = nn.Linear(features, 3 * features), nn.Linear(features, features)
            self.up, self.down = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)
            self.norm1, self.norm2 = nn.LayerNorm(features), nn.LayerNorm(features)

        def forward(self, x):
            x = x + self.out(attention_of(self.projections, self.norm1(x), heads, is_causal=True))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(words, features), nn.Embedding(positions, features)
            self.layers, self.norm = nn.Sequential(*[Layer() for _ in range(layers)]), nn.LayerNorm(features)

        def forward(self, ids):
            x = self.layers(self.words(ids) + self.positions.weight[: ids.shape[1]])
            return self.norm(x[:, -1]) @ self.words.weight.T

    return Network().eval()


def of_torchvision(name, **options):
    import torch
    import torchvision

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = torchvision.models.get_model(name, weights=None, **options)

        def forward(self, x):
            return torch.softmax(self.network(x), 1)

    return Network().eval()


# For each network of the zoo: the function that makes it, and the shape of its input.
_IMAGE = (1, 3, 224, 224)
NETWORKS = {
    "resnet-18": (lambda: residual(18), _IMAGE),
    "resnet-50": (lambda: residual(50), _IMAGE),
    "mobilenet_v2": (lambda: of_torchvision("mobilenet_v2"), _IMAGE),
    "squeezenet_v1.1": (lambda: of_torchvision("squeezenet1_1"), _IMAGE),
    "inception_v3": (lambda: of_torchvision("inception_v3", aux_logits=False, init_weights=True), (1, 3, 299, 299)),
    "bert-base": (bert_base, (1, 128)),
    "distilbert": (lambda: bert_base(layers=6, has_types=False), (1, 128)),
    "gpt2-small-prefill": (gpt2_small, (1, 128)),
    "vit-b-16": (lambda: of_torchvision("vit_b_16"), _IMAGE),
}


OF_WORDS = {name for name, (_, shape) in NETWORKS.items() if len(shape) == 2}


def make(name, batch=1):
    """The network and an input of it: images, or the numbers of words."""
    import torch
    torch.manual_seed(1)
    maker, (_, *shape) = NETWORKS[name]
    x = torch.randint(1000, (batch, *shape)) if name in OF_WORDS else torch.rand(batch, *shape)
    return maker(), x
