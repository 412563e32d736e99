"""torch_networks.py: the networks of examples/*.pnet in PyTorch, for bench/throughput, bench/paper_memory and bench/torch_accuracy.py.

    network("resnet56"), network("vgg16") ...: the module; RECIPE[...]: momentum, weight decay, nesterov as the example has them
"""
from torch import nn
from torch.nn import functional as F


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.linear1 = nn.Linear(400, 120)
        self.linear2 = nn.Linear(120, 84)
        self.linear3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x), inplace=True), 2)
        x = F.max_pool2d(F.relu(self.conv2(x), inplace=True), 2)
        x = F.relu(self.linear1(x.flatten(1)), inplace=True)
        x = F.relu(self.linear2(x), inplace=True)
        return self.linear3(x)


class Unit(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.stride, self.more = stride, channels - before

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        if self.more:  # option A
            x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.more // 2, self.more - self.more // 2))
        return F.relu(y.add_(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self, depth=20):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        units, before = [], 16
        for channels in (16, 32, 64):
            for i in range((depth - 2) // 6):
                units.append(Unit(before, channels, 2 if i == 0 and channels > 16 else 1))
                before = channels
        self.units = nn.Sequential(*units)
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.units(F.relu(self.norm(self.conv(x)), inplace=True))
        return self.linear(F.adaptive_avg_pool2d(x, 1).flatten(1))


def relu():
    return nn.ReLU(inplace=True)


def alexnet():
    convolution = nn.Conv2d
    return nn.Sequential(
        convolution(3, 64, 11, stride=2, padding=5), relu(), nn.MaxPool2d(2),
        convolution(64, 192, 3, padding=1), relu(), nn.MaxPool2d(2),
        convolution(192, 384, 3, padding=1), relu(),
        convolution(384, 256, 3, padding=1), relu(),
        convolution(256, 256, 3, padding=1), relu(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(1024, 4096), relu(), nn.Dropout(0.5), nn.Linear(4096, 4096), relu(), nn.Linear(4096, 10))


def vgg16():
    layers, before = [], 3
    for channels, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(before, channels, 3, padding=1), nn.BatchNorm2d(channels), relu()]
            before = channels
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.5), nn.Linear(512, 512), relu(), nn.Dropout(0.5),
                         nn.Linear(512, 512), relu(), nn.Linear(512, 10))


# momentum, weight decay, nesterov
RECIPE = {"lenet5": (0.9, 5e-4, False), "alexnet": (0.9, 4e-3, True), "vgg16": (0.9, 5e-4, True), "resnet": (0.9, 1e-4, False)}


def network(name):
    """Of lenet5, alexnet, vgg16, or resnet and a depth."""
    if name.startswith("resnet"):
        return ResNet(int(name[len("resnet"):]))
    return {"lenet5": LeNet, "alexnet": alexnet, "vgg16": vgg16}[name]()


def recipe(name):
    return RECIPE["resnet" if name.startswith("resnet") else name]
